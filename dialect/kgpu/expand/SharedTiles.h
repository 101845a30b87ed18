// Stores tiles to buffers in shared memory, and copies the functions of reductions and scans.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/IR/IRMapping.h"

namespace kpkg::kgpu {
/// Returns a new buffer with the tile, in the shared memory of the CTA, or of each CTA of the cluster. Threads can read
/// it after a barrier. `memory` is the order of the elements; row-major order without it.
inline mlir::Value storedTile(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value tile, bool acrossCtas = false,
                              std::optional<layout::SharedLayout> memory = std::nullopt) {
  auto type = mlir::cast<mlir::RankedTensorType>(tile.getType());
  SharedType held = SharedType::get(type.getShape(), type.getElementType(), memory);
  mlir::Value buffer = AllocOp::create(builder, loc, held, mlir::IntegerAttr());
  if (acrossCtas)
    RemoteStoreOp::create(builder, loc, tile, buffer);
  else
    LocalStoreOp::create(builder, loc, tile, buffer);
  return buffer;
}

/// Copies the body of `from`, with `Yield` as its terminator.
template <typename Yield> void copyBody(mlir::Region &from, mlir::Region &to) {
  mlir::IRMapping mapping;
  from.cloneInto(&to, mapping);
  mlir::Operation *end = to.front().getTerminator();
  mlir::OpBuilder builder(end);
  Yield::create(builder, end->getLoc(), end->getOperands());
  end->erase();
}
} // namespace kpkg::kgpu
