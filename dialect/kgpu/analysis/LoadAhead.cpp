// Finds loads of a loop whose addresses depend only on counters, so that they can be issued for another iteration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/LoadAhead.h"
#include "dialect/kgpu/analysis/AccessWidths.h"
#include "dialect/kgpu/analysis/Slices.h"
#include "dialect/kgpu/ir/Repeatable.h"
#include "dialect/tile/transforms/IndexFacts.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kpkg::kgpu {

constexpr const char *kNoVectors =
    "the tensor's address, strides or dimension of stride 1 are not known to permit copies of four bytes";

static WhyNot whyNotForRing(tile::LoadOp load) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  tile::ViewType view = load.getView().getType();
  if (!type)
    return "it loads a single element";
  if (view.getUnit() < 0 || mostTogether(view) * view.getElementBytes() < 4)
    return kNoVectors;
  bool isRow = type.getRank() == 0 || type.getNumElements() == type.getShape().back();
  int64_t bytes = type.getNumElements() * view.getElementBytes();
  const chips::Heuristics &heuristics = heuristicsOf(load->getParentOfType<tile::KernelOp>());
  int64_t least = isRow ? heuristics.leastBytesOfRow : heuristics.leastBytesOfRows;
  if (bytes < least)
    return "its tile has " + std::to_string(bytes) + " bytes, and fewer than " + std::to_string(least) +
           " do not pay for shared memory";
  return std::nullopt;
}

bool isForRing(tile::LoadOp load) { return !whyNotForRing(load); }

WhyNot whyNotFetched(tile::LoadOp load) {
  if (WhyNot why = whyNotForRing(load))
    return why;
  tile::ViewType view = load.getView().getType();
  int64_t together = mostTogether(view, load.getOffsets());
  bool hasVectors =
      together >= 1 && layoutOf(load.getResult()).vectorLength(view.getUnit(), together) * view.getElementBytes() >= 4;
  return hasVectors ? WhyNot() : kNoVectors;
}

SharedType slotFor(tile::LoadOp load, unsigned threads) {
  auto type = cast<RankedTensorType>(load.getType());
  int64_t bytes = int64_t(layoutOf(type).registers()) * elementBytes(type.getElementType()) * threads;
  return SharedType::get({bytes}, IntegerType::get(load.getContext(), 8));
}

std::optional<SmallVector<Operation *>> addressAhead(scf::ForOp loop, Operation *access,
                                                     const CarriedCounters *counters,
                                                     llvm::function_ref<bool(Operation *)> mayRepeat) {
  auto isOnlyCounter = [&](Operation *op) {
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      auto argument = dyn_cast<BlockArgument>(operand);
      return !argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar() ||
             (counters && counters->contain(argument));
    });
  };
  SetVector<Operation *> slice = sliceIn(*loop.getBody(), access->getOperands());
  bool isKnown = isOnlyCounter(access) && llvm::all_of(slice, [&](Operation *op) {
                   return isRepeatable(op) && op->getNumRegions() == 0 && isOnlyCounter(op) && mayRepeat(op);
                 });
  return isKnown ? std::optional(slice.takeVector()) : std::nullopt;
}

Value counterAfter(OpBuilder &builder, scf::ForOp loop, Value counter, int64_t iterations) {
  if (iterations == 0)
    return counter;
  Location loc = loop.getLoc();
  Value distance =
      arith::MulIOp::create(builder, loc, loop.getStep(), arith::ConstantIndexOp::create(builder, loc, iterations));
  return arith::AddIOp::create(builder, loc, counter, distance);
}

Value slotAfter(OpBuilder &builder, Location loc, Value slot, int64_t slots) {
  auto constant = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, loc, value); };
  Value next = arith::AddIOp::create(builder, loc, slot, constant(1));
  Value isLast = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, next, constant(slots));
  return arith::SelectOp::create(builder, loc, isLast, constant(0), next);
}

ResultOrWhy<LoadAhead> LoadAhead::find(scf::ForOp loop, tile::LoadOp load, const CarriedCounters *counters) {
  if (!isa<RankedTensorType>(load.getResult().getType()))
    return Refusal{"it loads a single element"};
  if (cast<tile::ViewType>(load.getView().getType()).getIsMut())
    return Refusal{"the kernel may write to the tensor"};
  auto isScalar = [](Operation *op) { return llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>); };
  if (std::optional<SmallVector<Operation *>> address = addressAhead(loop, load, counters, isScalar))
    return LoadAhead{loop, load, std::move(*address)};
  return Refusal{"its place depends on more than the loop's counter"};
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
