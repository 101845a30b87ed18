// Reading fragments of matrix products from shared memory by ldmatrix.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix reads 1, 2 or 4 matrices of 8 rows by 16 bytes. Lane 8j + i says where row i of matrix j lies. Of matrix j,
// lane 4r + c gets the word c of row r, in its result register j; transposed, of 2-byte elements, it gets elements
// 2c and 2c + 1 of column r.
#pragma once
#include "dialect/layout/Layout.h"
#include "dialect/layout/Shared.h"
#include <optional>

namespace kpkg::layout {
struct MatrixLoad {
  bool isTransposed = false;
  /// One instruction for each vector: where the row lies for which the lane speaks. Lanes that speak for no matrix
  /// repeat an address of another one.
  SharedAccess rows;
  /// For each instruction: the registers of the layout that its result words hold, lowest bytes first.
  llvm::SmallVector<llvm::SmallVector<llvm::SmallVector<unsigned, 4>, 4>> words;
};

/// How ldmatrix reads a tile with this layout from the memory, as `at` says; nothing when it cannot.
std::optional<MatrixLoad> planMatrixLoad(const Layout &layout, const SharedLayout &memory,
                                         llvm::ArrayRef<int64_t> at = {});

/// The layout in which every lane holds the rows for which it speaks: registers along 16 bytes of `contiguous`. What a
/// memory must be free of conflicts for. Nothing when ldmatrix cannot give `layout` from memory contiguous there.
std::optional<Layout> matrixRows(const Layout &layout, unsigned elementBytes, unsigned contiguous);
} // namespace kpkg::layout
