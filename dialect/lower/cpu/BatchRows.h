// Batches blocks that compute one row each into tiles of several rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::lower::cpu {

/// The number of consecutive blocks along x that the kernel body computes, starting at the block of `tile.block_id x`.
struct RowBatch {
  int64_t rows = 1;
  /// View arguments, each with the dimension whose row i belongs to block i. That dimension ends with the blocks of the
  /// task.
  llvm::SmallVector<std::pair<unsigned, int64_t>> views;
};

/// Widens the tiles of a kernel that computes one row in each block. Returns a batch of one row for other kernels,
/// which stay unchanged.
RowBatch batchRows(tile::KernelOp kernel);

} // namespace kpkg::lower::cpu
