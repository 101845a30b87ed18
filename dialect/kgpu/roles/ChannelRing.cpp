// Builds the ring buffers of channels, and numbers the uses that roles make of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/roles/ChannelRing.h"
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/roles/PlanChannels.h"

using namespace mlir;

namespace kpkg::kgpu {

Value ChannelRing::slotOf(OpBuilder &builder, Location loc, Value use, unsigned member) const {
  return useSlot(builder, loc, slotTypes[member], buffers[member], use);
}

/// Returns the type of a buffer of slots.
static SharedType ofSlots(SharedType slot, int64_t slots) {
  if (slot.getMemory())
    return ringOf(slots, slot);
  SmallVector<int64_t> shape(slot.getShape());
  shape.insert(shape.begin(), slots);
  return SharedType::get(shape, slot.getElementType());
}

/// Returns the type of a slot for a part of an operand: one panel with rows of 64 bytes.
static SharedType partOf(SharedType operand) {
  SmallVector<int64_t> shape = {kPartRows, kPartColumns};
  return SharedType::get(shape, operand.getElementType(),
                         cantFail(layout::SharedLayout::tma(shape, operand.getElementBytes(), layout::Swizzle::B64)));
}

static RingKind ringKindOf(ChannelKind kind) {
  switch (kind) {
  case ChannelKind::Copy:
    return RingKind::Copied;
  case ChannelKind::Exchanged:
    return RingKind::Shared;
  case ChannelKind::Published:
  case ChannelKind::Value:
    return RingKind::Published;
  }
  llvm_unreachable("a kind of channel");
}

SmallVector<ChannelRing, 2> makeRings(OpBuilder &builder, Location loc, const Channel &channel) {
  SmallVector<ChannelRing, 2> rings(channel.parts);
  for (ChannelRing &one : rings) {
    one.slotTypes = channel.slotTypes;
    if (channel.parts > 1)
      one.slotTypes = {partOf(channel.slotTypes.front())};
    for (SharedType slot : one.slotTypes)
      one.buffers.push_back(AllocOp::create(builder, loc, ofSlots(slot, channel.slots), IntegerAttr()));
    Value barriers =
        AllocOp::create(builder, loc, SharedType::get({2, channel.slots}, builder.getI64Type()), IntegerAttr());
    one.ring = RingOp::create(builder, loc, RingType::get(builder.getContext(), channel.slots), barriers,
                              ringKindOf(channel.kind));
  }
  return rings;
}

namespace {
class Numbering {
public:
  Numbering(IRRewriter &rewriter, ArrayRef<UseSpan> spans, bool isEarly)
      : rewriter(rewriter), spans(spans), isEarly(isEarly), numbers(spans.size()) {}

  /// Numbers the uses of a block from `number` on, and returns the number behind it.
  Value inBlock(Block &block, Value number) {
    for (Operation *op = &block.front(); op; op = op->getNextNode()) {
      if (auto loop = dyn_cast<scf::ForOp>(op); loop && hasUse(loop)) {
        loop = carryAlso(loop, number);
        op = loop;
        yieldLast(loop, inBlock(*loop.getBody(), loop.getRegionIterArgs().back()));
        number = loop.getResults().back();
      }
      for (auto [span, ofSpan] : llvm::zip(spans, numbers)) {
        if (span.begin() == op)
          ofSpan = number;
        if ((isEarly ? span.begin() : span.end()) != op)
          continue;
        isEarly ? rewriter.setInsertionPoint(op) : rewriter.setInsertionPointAfter(op);
        Value one = arith::ConstantIntOp::create(rewriter, op->getLoc(), 1, 32);
        number = arith::AddIOp::create(rewriter, op->getLoc(), number, one);
      }
    }
    return number;
  }

  FailureOr<SmallVector<Value>> result() const {
    for (auto [span, number] : llvm::zip(spans, numbers))
      if (!number)
        return LogicalResult(
            span.first->emitOpError("is needed by warpgroups that do not compute it, but not in every iteration"));
    return numbers;
  }

private:
  bool hasUse(scf::ForOp loop) const {
    return llvm::any_of(spans, [&](const UseSpan &span) { return loop->isProperAncestor(span.begin()); });
  }

  IRRewriter &rewriter;
  ArrayRef<UseSpan> spans;
  bool isEarly;
  SmallVector<Value> numbers;
};
} // namespace

FailureOr<SmallVector<Value>> numberUses(IRRewriter &rewriter, Block &role, ArrayRef<UseSpan> spans, bool isEarly) {
  rewriter.setInsertionPointToStart(&role);
  Value zero = arith::ConstantIntOp::create(rewriter, role.getParentOp()->getLoc(), 0, 32);
  Numbering numbering(rewriter, spans, isEarly);
  (void)numbering.inBlock(role, zero);
  return numbering.result();
}

} // namespace kpkg::kgpu
