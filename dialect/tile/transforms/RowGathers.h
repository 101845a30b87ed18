// Gathers that read a piece of a row for each of their rows, and scatters that write one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// A gather of R x C elements of which element (r, c) lies at coordinate start + c of dimension `along`, and at
/// coordinates that depend on r only in the others. A view that is a matrix of pixels and channels, or rows of a table
/// that another tensor numbers, are read like this.
struct RowGather {
  unsigned along;
  llvm::SmallVector<mlir::Value, 2> start; ///< scalar integers; their sum is the start
};

/// Of coordinates of a gather of this shape without a mask; nothing when they have another form.
std::optional<RowGather> rowGather(mlir::ValueRange indices, llvm::ArrayRef<int64_t> shape);
/// Nothing when `op` has another form, or a mask.
std::optional<RowGather> rowGather(GatherOp op);

/// How many neighbours of a row, a power of two up to 16 bytes, facts promise to lie together, and in the view all or
/// none; 1 for other gathers.
int64_t neighboursOf(ViewType view, mlir::ValueRange indices, llvm::ArrayRef<int64_t> shape);
/// The same for what is written.
int64_t neighboursOf(ScatterOp op);
/// Whether `op` writes pieces of rows of the last dimension, and all of a piece.
bool scattersRows(ScatterOp op);

} // namespace kpkg::tile
