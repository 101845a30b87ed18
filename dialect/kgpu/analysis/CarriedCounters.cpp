// Finds counters that a loop carries, so that their values in later iterations can be computed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/CarriedCounters.h"
#include "dialect/kgpu/analysis/Slices.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kpkg::kgpu {
/// Collects the ops of the loop that compute the next value of carried value `number`. Returns false if they depend on
/// more than the carried values `numbers` and values from outside.
static bool collect(scf::ForOp loop, ArrayRef<unsigned> numbers, unsigned number, llvm::SetVector<Operation *> &step) {
  auto isKnown = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || argument.getOwner() != loop.getBody())
      return true;
    return argument != loop.getInductionVar() &&
           llvm::is_contained(numbers, argument.getArgNumber() - loop.getNumInductionVars());
  };
  Value next = loop.getYieldedValues()[number];
  if (!isKnown(next))
    return false;
  SetVector<Operation *> slice = sliceIn(*loop.getBody(), next);
  for (Operation *op : slice)
    if (!isMemoryEffectFree(op) || op->getNumRegions() != 0 ||
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>) ||
        !llvm::all_of(op->getOperands(), isKnown))
      return false;
  step.insert_range(slice);
  return true;
}

CarriedCounters CarriedCounters::of(scf::ForOp loop) {
  CarriedCounters found{loop, {}, {}};
  for (auto [number, argument] : llvm::enumerate(loop.getRegionIterArgs()))
    if (argument.getType().isIndex())
      found.numbers.push_back(number);
  llvm::SetVector<Operation *> step;
  for (size_t before = found.numbers.size() + 1; before != found.numbers.size();) {
    before = found.numbers.size();
    step.clear();
    SmallVector<unsigned> known = found.numbers;
    llvm::erase_if(found.numbers, [&](unsigned number) { return !collect(loop, known, number, step); });
  }
  found.step = step.takeVector();
  llvm::sort(found.step, [](Operation *one, Operation *other) { return one->isBeforeInBlock(other); });
  return found;
}

bool CarriedCounters::contain(BlockArgument argument) const {
  scf::ForOp around = loop;
  return argument.getOwner() == around.getBody() && argument != around.getInductionVar() &&
         llvm::is_contained(numbers, argument.getArgNumber() - around.getNumInductionVars());
}

SmallVector<Value> CarriedCounters::first() const {
  scf::ForOp around = loop;
  return llvm::map_to_vector(numbers, [&](unsigned number) { return around.getInitArgs()[number]; });
}

SmallVector<Value> CarriedCounters::next(OpBuilder &builder, ValueRange now) const {
  scf::ForOp around = loop;
  IRMapping mapping;
  map(mapping, now);
  for (Operation *op : step)
    builder.clone(*op, mapping);
  return llvm::map_to_vector(
      numbers, [&](unsigned number) { return mapping.lookupOrDefault(around.getYieldedValues()[number]); });
}

void CarriedCounters::map(IRMapping &mapping, ValueRange now) const {
  scf::ForOp around = loop;
  for (auto [number, value] : llvm::zip_equal(numbers, now))
    mapping.map(around.getRegionIterArg(number), value);
}
} // namespace kpkg::kgpu
