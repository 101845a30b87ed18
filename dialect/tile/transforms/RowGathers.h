// Matches gathers that read a contiguous piece of a row for each of their rows, and scatters that write one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// A gather of R x C elements whose element (r, c) has coordinate start + c in dimension `along`. Its other coordinates
/// depend on r only. Examples are views as matrices of pixels and channels, and rows of a table that another tensor
/// indexes.
struct RowGather {
  unsigned along;
  llvm::SmallVector<mlir::Value, 2> start; ///< Scalar integers; their sum is the start.
};

/// Matches the coordinates of an unmasked gather of this shape. Returns nothing when they have another form.
std::optional<RowGather> rowGather(mlir::ValueRange indices, llvm::ArrayRef<int64_t> shape);
/// Matches a gather. Returns nothing when `op` has another form, or a mask.
std::optional<RowGather> rowGather(GatherOp op);

/// Returns how many elements of a row are contiguous by the facts, and all inside the view or all outside. The number
/// is a power of two, at most 16 bytes of elements. Returns 1 for other gathers.
int64_t neighboursOf(ViewType view, mlir::ValueRange indices, llvm::ArrayRef<int64_t> shape);
/// As above, for the elements that a scatter writes.
int64_t neighboursOf(ScatterOp op);
/// Returns whether `op` writes whole pieces of rows of the last dimension.
bool scattersRows(ScatterOp op);

} // namespace kpkg::tile
