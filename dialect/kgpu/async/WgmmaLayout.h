// How the accumulator and the left operand of a product of warpgroups lie in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::kgpu {
/// Of a tile of rows x columns that `warpgroups` share, 64 rows of each 64 * warpgroups in turn. Source of the
/// fragment: PTX ISA, "Register fragments and shared memory matrix layouts" of wgmma. Rows are a multiple of 64,
/// columns of 8; powers of two but for the columns. Where `sharesColumns`, warpgroups of the same rows have columns of
/// their own; else those without rows of their own have the same as others.
layout::Layout wgmmaAccumulator(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
/// Of a tile of 64 rows that one warpgroup makes for `warpgroups` others: all of it, as if each of them had it.
layout::Layout wgmmaMade(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
/// Of a tile whose transpose is such an accumulator.
layout::Layout wgmmaTurned(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
/// Of a left operand that products take from registers: for elements of 16 bits the same.
layout::Layout wgmmaLeftOperand(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, unsigned warpgroups);

/// Of the positions [rows, depth / 16] of a left operand that has two of every four elements: a thread has words of two
/// rows, a neighbour of it the next 16 columns. Source: PTX ISA, "Sparse matrix storage" of wgmma.mma_async.sp; lanes 0
/// and 1 of four for a step of 32 columns, 2 and 3 for the next one.
layout::Layout wgmmaPositions(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);

/// Whether a tile has rows for some of the warpgroups only, and columns that the others can share with them, at least
/// 32 each.
bool sharesColumns(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
/// Whether they do so in whole panels of 64, as what is copied by the rows of a tile lies in shared memory.
bool sharesPanels(llvm::ArrayRef<int64_t> shape, unsigned warpgroups);
} // namespace kpkg::kgpu
