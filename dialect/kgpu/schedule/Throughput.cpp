// What a multiprocessor does in a cycle at most, for estimates that compare launches of one kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/schedule/Throughput.h"

namespace kpkg::kgpu {
namespace {
/// Multiply-adds of a multiprocessor in a cycle. Source: tables of arithmetic throughput in NVIDIA's CUDA programming guide.
struct Rates {
  llvm::StringLiteral chip;
  double single, twice; ///< of 32 and 64 bits
};
constexpr Rates rates[] = {
    {"sm_80", 64, 32}, {"sm_86", 128, 2}, {"sm_89", 128, 2}, {"sm_90a", 128, 64}, {"sm_100a", 128, 64}, {"sm_120", 128, 2},
};
/// Of a line of the second-level cache, on every chip so far.
constexpr double kBytesPerCycle = 64;
} // namespace

Throughput throughput(tile::KernelOp kernel, const TargetModel &target) {
  bool isDouble = false;
  kernel.walk([&](mlir::Operation *op) {
    for (mlir::Type type : op->getResultTypes())
      if (auto tile = mlir::dyn_cast<mlir::RankedTensorType>(type))
        isDouble |= tile.getElementType().isF64();
  });
  const Rates *found = llvm::find_if(rates, [&](const Rates &known) { return known.chip == target.chip; });
  assert(found != std::end(rates) && "a chip without rates");
  return {2 * (isDouble ? found->twice : found->single), kBytesPerCycle};
}
} // namespace kpkg::kgpu
