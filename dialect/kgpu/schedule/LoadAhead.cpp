// Loads of a loop whose addresses follow from its counter, so that they can be issued for another iteration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/schedule/LoadAhead.h"
#include "dialect/kgpu/ir/Repeatable.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kpkg::kgpu {
static bool isOnlyCounter(scf::ForOp loop, Operation *op) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    return !argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar();
  });
}

std::optional<LoadAhead> LoadAhead::find(scf::ForOp loop, tile::LoadOp load) {
  if (!isa<RankedTensorType>(load.getResult().getType()) || cast<tile::ViewType>(load.getView().getType()).getIsMut())
    return std::nullopt;
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.filter = [&](Operation *op) { return op->getBlock() == loop.getBody(); };
  if (failed(getBackwardSlice(load.getOperation(), &slice, options)))
    return std::nullopt;
  for (Operation *op : slice)
    if (!isRepeatable(op) || op->getNumRegions() != 0 || !isOnlyCounter(loop, op) ||
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return std::nullopt;
  if (!isOnlyCounter(loop, load))
    return std::nullopt;
  return LoadAhead{loop, load, SmallVector<Operation *>(slice.begin(), slice.end())};
}

bool LoadAhead::followsCounter() const {
  scf::ForOp around = loop;
  auto usesCounter = [&](Operation *op) { return llvm::is_contained(op->getOperands(), around.getInductionVar()); };
  return usesCounter(load) || llvm::any_of(address, usesCounter);
}

IRMapping LoadAhead::addressAt(OpBuilder &builder, Value counter) const {
  scf::ForOp around = loop;
  IRMapping mapping;
  mapping.map(around.getInductionVar(), counter);
  for (Operation *op : address)
    builder.clone(*op, mapping);
  return mapping;
}

Value LoadAhead::loadAt(OpBuilder &builder, Value counter) const {
  IRMapping mapping = addressAt(builder, counter);
  tile::LoadOp op = load;
  return builder.clone(*op, mapping)->getResult(0);
}
} // namespace kpkg::kgpu
