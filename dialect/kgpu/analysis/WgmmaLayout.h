// Defines the register layouts of the accumulator and the left operand of wgmma.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Returns the layout of an accumulator of rows x columns that `warpgroups` share, 64 rows of each 64 * warpgroups in
/// turn. Source of the fragment: PTX ISA, "Register fragments and shared memory matrix layouts" of wgmma. Rows are a
/// multiple of 64, columns of 8; rows and warpgroups are powers of two. If `sharesColumns`, warpgroups with the same
/// rows have different columns. Otherwise warpgroups without rows of their own hold copies.
layout::Layout wgmmaAccumulator(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
/// Returns the layout of a tile of 64 rows that one producer warpgroup computes: as if each consumer held all of it.
layout::Layout wgmmaMade(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
/// Returns the layout of a tile whose transpose is such an accumulator.
layout::Layout wgmmaTransposed(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
/// Returns the layout of a left operand in registers. For 16-bit elements it is that of the accumulator.
layout::Layout wgmmaLeftOperand(mlir::Value tile, unsigned warpgroups);

/// Returns the layout of the positions [rows, depth / 16] of a left operand with 2:4 sparsity. A thread holds words of
/// two rows, and the adjacent thread the next 16 columns. Lanes 0 and 1 of four serve a step of 32 columns, 2 and 3
/// the next one. Source: PTX ISA, "Sparse matrix storage" of wgmma.mma_async.sp.
layout::Layout wgmmaPositions(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);

/// Returns whether a tile has rows for some of the warpgroups only, and at least 32 columns for each warpgroup that
/// shares those rows.
bool sharesColumns(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
/// Returns whether warpgroups share columns in whole panels of 64, as row-major copies lie in shared memory.
bool sharesPanels(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
} // namespace kpkg::kgpu
