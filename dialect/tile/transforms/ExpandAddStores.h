// Expands tile.add_store to atomic updates of elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {
/// Returns the coordinates of each element of a tile that begins at `offsets`: one tile for each dimension.
llvm::SmallVector<mlir::Value> coordinatesOf(mlir::OpBuilder &builder, mlir::Location loc,
                                             llvm::ArrayRef<int64_t> shape, mlir::ValueRange offsets);

/// Replaces the op, which has no layouts yet, by a tile.atomic.
void expandAddStore(AddStoreOp op);
} // namespace kpkg::tile
