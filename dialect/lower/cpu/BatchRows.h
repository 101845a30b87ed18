// Lets several blocks that have a row each run as one tile of rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::lower::cpu {

/// How many neighbouring blocks along x the body of a kernel computes, from the one that `tile.block_id x` gives on.
struct RowBatch {
  int64_t rows = 1;
  /// Arguments of which row i is block i's, with that dimension: they end where the blocks of a task do.
  llvm::SmallVector<std::pair<unsigned, int64_t>> views;
};

/// Widens the tiles of a kernel whose blocks have a row each. Others stay as they are, with batches of one.
RowBatch batchRows(tile::KernelOp kernel);

} // namespace kpkg::lower::cpu
