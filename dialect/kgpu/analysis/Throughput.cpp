// Estimates the peak throughput of a multiprocessor per cycle, to compare launches of one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/Throughput.h"
#include "dialect/kgpu/analysis/DotLayout.h"

namespace kpkg::kgpu {
namespace {
/// Returns the operations per cycle of `consumers` warpgroups that are alone on a multiprocessor, for the product with
/// the longest step. `most` is the rate of the multiprocessor. With other warpgroups and CTAs, those compute during
/// `cyclesAround`.
double ratesAlone(tile::KernelOp kernel, unsigned consumers, double most, double cyclesAround) {
  double step = 0;
  kernel.walk([&](tile::DotOp dot) {
    auto sum = mlir::cast<mlir::RankedTensorType>(dot.getType()),
         left = mlir::cast<mlir::RankedTensorType>(dot.getLhs().getType());
    step = std::max(step, 2.0 * double(sum.getNumElements()) * double(left.getShape().back()));
  });
  return step == 0 ? most : std::min(most, step / (step / most / consumers + cyclesAround));
}
} // namespace

Throughput throughput(tile::KernelOp kernel, const TargetModel &target, const Launch &launch) {
  bool isDouble = false, isTensor = launch.consumers != 0;
  unsigned operandBits = 16;
  kernel.walk([&](mlir::Operation *op) {
    if (auto dot = mlir::dyn_cast<tile::DotOp>(op)) {
      operandBits = mlir::getElementTypeOrSelf(dot.getLhs().getType()).getIntOrFloatBitWidth();
      isTensor |= dotKind(dot, target) != DotKind::Fma;
    }
    for (mlir::Type type : op->getResultTypes())
      if (auto tile = mlir::dyn_cast<mlir::RankedTensorType>(type))
        isDouble |= tile.getElementType().isF64();
  });
  double perCycle = isTensor   ? target.tensor16PerCycle * 16 / operandBits
                    : isDouble ? target.float64PerCycle
                               : target.float32PerCycle;
  double most = 2 * perCycle;
  double alone =
      launch.consumers ? ratesAlone(kernel, launch.consumers, most, target.heuristics.cyclesAroundStep) : most;
  return {most, alone, target.cacheBytesPerCycle};
}
} // namespace kpkg::kgpu
