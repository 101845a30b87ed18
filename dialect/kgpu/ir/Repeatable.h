// Tells which ops may be repeated elsewhere, or by other threads, with the same result.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::kgpu {

/// Returns true for pure ops, and for loads of single elements from memory that the kernel does not write. Also
/// returns true for ops whose regions hold only such ops. Numbers read from tiles are excepted: whoever repeats them
/// needs the tile.
inline bool isRepeatable(mlir::Operation *op) {
  if (mlir::isa<tile::ScalarOp>(op))
    return false;
  if (auto load = mlir::dyn_cast<tile::LoadOp>(op))
    return !mlir::isa<mlir::RankedTensorType>(load.getResult().getType()) && !load.getView().getType().getIsMut();
  if (!op->hasTrait<mlir::OpTrait::HasRecursiveMemoryEffects>())
    return mlir::isMemoryEffectFree(op);
  for (mlir::Region &region : op->getRegions())
    for (mlir::Operation &inner : region.getOps())
      if (!isRepeatable(&inner))
        return false;
  return true;
}

} // namespace kpkg::kgpu
