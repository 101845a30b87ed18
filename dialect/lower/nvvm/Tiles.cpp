// Emits the dynamic tile scheduler: CTAs take tiles from a counter, and roles publish and consume tile numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

namespace {
/// Returns the address of a slot of a channel, after all barriers.
Value numberAt(ImplicitLocOpBuilder &builder, Value barriers, int64_t slots, Value slot) {
  return bytesBehind(builder, bytesBehind(builder, barriers, 2 * slots * barrierBytes),
                     arith::MulIOp::create(builder, slot, constantOf(builder, barrierBytes)).getResult());
}

Value indexOf(ImplicitLocOpBuilder &builder, Value number) {
  return arith::IndexCastUIOp::create(builder, builder.getIndexType(), number);
}
} // namespace

LogicalResult Emitter::emitNextTile(kgpu::NextTileOp op) {
  if (!counter)
    return op.emitOpError("is in a kernel that has no counter");
  Value count = arith::IndexCastOp::create(builder, builder.getI32Type(), scalar(op.getCount()));
  Value last = arith::SubIOp::create(builder, count, constantOf(builder, 1));
  Value taken = countUpTo(builder, counter, last);
  define(op, {indexOf(builder, arith::AddIOp::create(builder, taken, ctaCount(builder, tile::GridAxis::x)))});
  return success();
}

LogicalResult Emitter::emitPublishIndex(kgpu::PublishIndexOp op) {
  Value barriers = scalar(op.getRing());
  int64_t slots = op.getRing().getType().getSlots();
  RingUse use = ringUse(builder, barriers, slots, scalar(op.getUse()));
  ptx::barrierWait(builder, use.empty, arith::XOrIOp::create(builder, use.parity, constantOf(builder, 1)));
  Value number = arith::IndexCastOp::create(builder, builder.getI32Type(), scalar(op.getNumber()));
  sendNumber(builder, numberAt(builder, barriers, slots, use.slot), number, use.full);
  return success();
}

LogicalResult Emitter::emitConsumeIndex(kgpu::ConsumeIndexOp op) {
  Value barriers = scalar(op.getRing());
  int64_t slots = op.getRing().getType().getSlots();
  RingUse use = ringUse(builder, barriers, slots, scalar(op.getUse()));
  ptx::barrierWait(builder, use.full, use.parity);
  // The first lane reads the number for all lanes, so it alone signals that the slot has been read.
  Value number = uniform(builder, ptx::wordsAt(builder, numberAt(builder, barriers, slots, use.slot), 1).front());
  Value lane = arith::AndIOp::create(builder, place.thread(), constantOf(builder, 31));
  ptx::barrierArriveWhere(builder, use.empty,
                          arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, lane, constantOf(builder, 0)));
  define(op, {indexOf(builder, number)});
  return success();
}

} // namespace kpkg::lower::nvvm
