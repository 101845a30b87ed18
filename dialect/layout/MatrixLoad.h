// Plans ldmatrix loads of matrix-product fragments from shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix reads 1, 2 or 4 matrices of 8 rows by 16 bytes. Lane 8j + i supplies the address of row i of matrix j. Lane
// 4r + c receives word c of row r of matrix j in result register j. Transposed, with 2-byte elements, it receives
// elements 2c and 2c + 1 of column r.
#pragma once
#include "dialect/layout/Layout.h"
#include "dialect/layout/Shared.h"
#include <optional>

namespace kpkg::layout {
struct MatrixLoad {
  bool isTransposed = false;
  /// Row addresses of one instruction for each vector: each lane supplies the address of one row. Lanes beyond the last
  /// matrix repeat the address of another row.
  SharedAccess rows;
  /// For each instruction and result word: the registers of the layout that the word holds, lowest bytes first.
  llvm::SmallVector<llvm::SmallVector<llvm::SmallVector<unsigned, 4>, 4>> words;
};

/// Plans how ldmatrix reads a tile with this layout from `memory` at the offset `at`. Returns nothing when it cannot.
std::optional<MatrixLoad> planMatrixLoad(const Layout &layout, const SharedLayout &memory,
                                         llvm::ArrayRef<int64_t> at = {});

/// Returns the layout in which every lane holds the rows whose addresses it supplies: registers along 16 bytes of
/// dimension `contiguous`. Memory must have no bank conflicts for this layout. Returns nothing when ldmatrix cannot
/// produce `layout` from memory that is contiguous along that dimension.
std::optional<Layout> matrixRows(const Layout &layout, unsigned elementBytes, unsigned contiguous);
} // namespace kpkg::layout
