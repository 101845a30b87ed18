// Which scalars may be computed again, elsewhere or by other threads, with the same result.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::kgpu {

/// True for pure ops, for reads of single elements of memory that the kernel does not write, and for ops that hold
/// nothing else.
inline bool isRepeatable(mlir::Operation *op) {
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
