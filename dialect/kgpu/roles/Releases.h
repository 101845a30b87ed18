// Moves waits for products together with the releases of slots behind them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kpkg::kgpu {
/// Returns the releases of slots that directly follow the wait, apart from the arithmetic of their uses.
inline llvm::SmallVector<ReleaseOp> releasesAfter(WgmmaWaitOp wait) {
  llvm::SmallVector<ReleaseOp> releases;
  for (mlir::Operation *next = wait->getNextNode();
       mlir::isa_and_nonnull<ReleaseOp, mlir::arith::AddIOp, mlir::arith::ConstantOp>(next); next = next->getNextNode())
    if (auto release = mlir::dyn_cast<ReleaseOp>(next))
      releases.push_back(release);
  return releases;
}

/// Moves the releases behind `place`, in order.
inline void moveAfter(mlir::Operation *place, llvm::ArrayRef<ReleaseOp> releases) {
  for (ReleaseOp release : llvm::reverse(releases))
    release->moveAfter(place);
}
} // namespace kpkg::kgpu
