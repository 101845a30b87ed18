// Estimates the peak throughput of a multiprocessor per cycle, to compare launches of one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/Throughput.h"
#include "dialect/kgpu/analysis/DotLayout.h"

namespace kpkg::kgpu {
namespace {
/// FMAs of a multiprocessor per cycle. Source: tables of arithmetic throughput in NVIDIA's CUDA programming guide.
struct Rates {
  llvm::StringLiteral chip;
  double single, twice; ///< of 32 and 64 bits, on CUDA cores
  double tensor;        ///< of 16 bits, on tensor cores; other widths in proportion
};
constexpr Rates rates[] = {
    {"sm_80", 64, 32, 1024},   {"sm_86", 128, 2, 512},     {"sm_89", 128, 2, 512},
    {"sm_90a", 128, 64, 2048}, {"sm_100a", 128, 64, 4096}, {"sm_120", 128, 2, 512},
};
/// From the L2 cache to a multiprocessor, the same on every chip so far.
constexpr double kBytesPerCycle = 64;
/// Cycles of a warpgroup's step besides its products: waiting for operands, starting products, and waiting for the
/// last one. Fits 512 x 512 x 8192 to 2048 x 2048 x 2048 on an H200 within a few percent. Other warpgroups and CTAs
/// compute meanwhile.
constexpr double kCyclesAroundStep = 330;

/// Returns the operations per cycle of `consumers` warpgroups that are alone on a multiprocessor, for the product with
/// the longest step. `most` is the rate of the multiprocessor.
double ratesAlone(tile::KernelOp kernel, unsigned consumers, double most) {
  double step = 0;
  kernel.walk([&](tile::DotOp dot) {
    auto sum = mlir::cast<mlir::RankedTensorType>(dot.getType()),
         left = mlir::cast<mlir::RankedTensorType>(dot.getLhs().getType());
    step = std::max(step, 2.0 * double(sum.getNumElements()) * double(left.getShape().back()));
  });
  return step == 0 ? most : std::min(most, step / (step / most / consumers + kCyclesAroundStep));
}
} // namespace

Throughput throughput(tile::KernelOp kernel, const TargetModel &target, const Launch &launch) {
  const Rates *found = llvm::find_if(rates, [&](const Rates &known) { return known.chip == target.chip; });
  assert(found != std::end(rates) && "a chip without rates");
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
  double perCycle = isTensor ? found->tensor * 16 / operandBits : isDouble ? found->twice : found->single;
  double most = 2 * perCycle;
  return {most, launch.consumers ? ratesAlone(kernel, launch.consumers, most) : most, kBytesPerCycle};
}
} // namespace kpkg::kgpu
