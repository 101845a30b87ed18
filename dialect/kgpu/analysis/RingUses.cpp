// Determines which use of a ring an op belongs to, and checks how roles count uses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/ir/Walks.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kpkg::kgpu {

Value rootBuffer(Value buffer) {
  while (Value whole = aliasedBuffer(buffer.getDefiningOp()))
    buffer = whole;
  return buffer;
}

bool isSlotOf(Value buffer, Value use) {
  if (auto transposed = buffer.getDefiningOp<TransposeBufferOp>())
    buffer = transposed.getBuffer();
  auto slot = buffer.getDefiningOp<SlotOp>();
  if (!slot)
    return false;
  int64_t slots = cast<SharedType>(slot.getBuffer().getType()).getShape()[0];
  APInt index, number;
  if (matchPattern(slot.getIndex(), m_ConstantInt(&index)))
    return slots == 1 || (matchPattern(use, m_ConstantInt(&number)) && index == number.getZExtValue() % slots);
  auto cast = slot.getIndex().getDefiningOp<arith::IndexCastUIOp>();
  auto rest = cast ? cast.getIn().getDefiningOp<arith::RemUIOp>() : arith::RemUIOp();
  APInt count;
  return rest && rest.getLhs() == use && matchPattern(rest.getRhs(), m_ConstantInt(&count)) && count == slots;
}

Value useSlot(OpBuilder &builder, Location loc, SharedType slot, Value buffer, Value use) {
  int64_t slots = cast<SharedType>(buffer.getType()).getShape().front();
  if (slots == 1)
    return SlotOp::create(builder, loc, slot, buffer, arith::ConstantIndexOp::create(builder, loc, 0));
  Value count = arith::ConstantIntOp::create(builder, loc, slots, 32);
  Value index = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                             arith::RemUIOp::create(builder, loc, use, count));
  return SlotOp::create(builder, loc, slot, buffer, index);
}

Value ringOfUse(Operation *op) {
  if (auto await = dyn_cast<AwaitOp>(op)) {
    auto ring = await.getRing().getDefiningOp<RingOp>();
    return ring && ring.getKind() == RingKind::Shared ? Value() : await.getRing();
  }
  return TypeSwitch<Operation *, Value>(op)
      .Case<AcquireOp, PublishAllOp, PublishOp, PublishIndexOp, ConsumeIndexOp>([](auto use) { return use.getRing(); })
      .Default([](Operation *) { return Value(); });
}

bool containsUse(Operation *op, Value ring) {
  return containsOp(op, [&](Operation *inner) { return ringOfUse(inner) == ring; });
}

unsigned releasing(RingOp ring) {
  auto kernel = ring->getParentOfType<tile::KernelOp>();
  Launch launch = getLaunch(kernel);
  unsigned count = 0;
  kernel.walk([&](RolesOp roles) {
    auto releases = [&](Region &role) {
      return llvm::any_of(ring->getUsers(), [&](Operation *user) {
        return isa<ReleaseOp>(user) && role.isAncestor(user->getParentRegion());
      });
    };
    count += (releases(roles.getConsumers()) ? launch.consumers : 0) +
             (releases(roles.getProducers()) ? launch.producers : 0);
  });
  return std::max(count, 1u);
}

UseCount useCountOf(Value value) {
  UseCount count{value, 0};
  APInt step;
  while (auto sum = count.base.getDefiningOp<arith::AddIOp>()) {
    if (!matchPattern(sum.getRhs(), m_ConstantInt(&step)))
      break;
    count = {sum.getLhs(), count.offset + step.getSExtValue()};
  }
  return matchPattern(count.base, m_ConstantInt(&step)) ? UseCount{{}, count.offset + step.getSExtValue()} : count;
}

namespace {
Value useOf(Operation *op) {
  return TypeSwitch<Operation *, Value>(op)
      .Case<AcquireOp, AwaitOp, PublishAllOp, PublishOp, PublishIndexOp, ConsumeIndexOp>(
          [](auto use) { return use.getUse(); });
}

/// Returns whether the first use of the ring inside the loop takes its number from this argument.
bool isCounterOf(RingOp ring, const CarryingLoop &loop, Value argument) {
  for (Operation &op : *loop.body) {
    if (ringOfUse(&op) == ring.getResult())
      return useOf(&op) == argument;
    CarryingLoop inner = containsUse(&op, ring) ? carryingLoop(&op) : CarryingLoop();
    if (!inner)
      continue;
    return llvm::any_of(llvm::zip(inner.inits, inner.arguments), [&](auto carried) {
      return std::get<0>(carried) == argument && isCounterOf(ring, inner, std::get<1>(carried));
    });
  }
  return false;
}

FailureOr<UseCount> count(RingOp ring, Block &block, UseCount current);

FailureOr<UseCount> countLoop(RingOp ring, const CarryingLoop &loop, UseCount current) {
  for (auto [argument, init, yielded, result] : llvm::zip(loop.arguments, loop.inits, loop.yielded, loop.results)) {
    if (!argument.getType().isInteger(32) || !(useCountOf(init) == current) || !isCounterOf(ring, loop, argument))
      continue;
    FailureOr<UseCount> last = count(ring, *loop.body, {argument, 0});
    if (failed(last))
      return failure();
    if (!(useCountOf(yielded) == *last))
      return loop.op->emitOpError("does not carry on how often a ring was used");
    return UseCount{result, 0};
  }
  return loop.op->emitOpError("does not carry how often a ring was used");
}

/// Walks a block before which the ring was used `current` times, and returns the count after the block.
FailureOr<UseCount> count(RingOp ring, Block &block, UseCount current) {
  for (Operation &op : block) {
    if (ringOfUse(&op) == ring.getResult()) {
      if ((ring.getKind() == RingKind::Channel) != isa<PublishIndexOp, ConsumeIndexOp>(op))
        return op.emitOpError("uses a ring of numbers as one of copies, or the other way round");
      if (!(useCountOf(useOf(&op)) == current))
        return op.emitOpError("is another use than the one whose turn it is");
      ++current.offset;
      continue;
    }
    if (op.getNumRegions() == 0 || !containsUse(&op, ring))
      continue;
    CarryingLoop loop = carryingLoop(&op);
    if (!loop)
      return op.emitOpError("decides whether a ring is used, which only loops may");
    FailureOr<UseCount> after = countLoop(ring, loop, current);
    if (failed(after))
      return failure();
    current = *after;
  }
  return current;
}
} // namespace

LogicalResult verifyCounts(RingOp ring, Block &role) { return failure(failed(count(ring, role, UseCount()))); }

} // namespace kpkg::kgpu
