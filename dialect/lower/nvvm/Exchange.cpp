// Emits exchanges between the CTAs of a cluster: remote stores that signal the reader's mbarrier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/SharedMemory.h"
#include "dialect/lower/nvvm/Words.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace kpkg::lower::nvvm {
namespace {

Value isZero(ImplicitLocOpBuilder &builder, Value number) {
  return arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, number, constantOf(builder, 0));
}
} // namespace

LogicalResult Emitter::emitExchangeInit(kgpu::ExchangeInitOp op) {
  Value barriers = scalar(op.getBarriers()), first = isZero(builder, place.thread());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(scf::IfOp::create(builder, first, /*withElseRegion=*/false).thenBlock());
  for (int64_t slot = 0; slot < op.getBarriers().getType().getShape()[0]; ++slot)
    barrierInit(builder, bytesBehind(builder, barriers, slot * barrierBytes), 1);
  fenceBarrierInit(builder);
  return success();
}

LogicalResult Emitter::emitExchange(kgpu::ExchangeOp op) {
  int64_t slots = op.getBarriers().getType().getShape()[0];
  Value use = scalar(op.getUse()), barrier = scalar(op.getBarriers());
  Value lap = use;
  if (slots > 1) {
    Value count = constantOf(builder, slots), slot = arith::RemUIOp::create(builder, use, count);
    lap = arith::DivUIOp::create(builder, use, count);
    barrier = bytesBehind(builder, barrier,
                          arith::MulIOp::create(builder, slot, constantOf(builder, barrierBytes)).getResult());
  }
  Value parity = arith::AndIOp::create(builder, lap, constantOf(builder, 1));
  int64_t bytes = 0;
  for (Value part : op.getParts())
    bytes += cast<RankedTensorType>(part.getType()).getNumElements() *
             kgpu::elementBytes(getElementTypeOrSelf(part.getType()));
  {
    Value first = isZero(builder, place.thread());
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(scf::IfOp::create(builder, first, /*withElseRegion=*/false).thenBlock());
    barrierExpect(builder, barrier, bytes);
  }
  {
    // All lanes hold the same values, so each lane sends to a different CTA.
    Value rank = place.bits(kgpu::layoutOf(op.getParts().front())).lane;
    Value sends = arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, rank, constantOf(builder, launch.cluster));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(scf::IfOp::create(builder, sends, /*withElseRegion=*/false).thenBlock());
    Value signal = remoteAddress(builder, barrier, rank);
    for (auto [part, buffer] : llvm::zip_equal(op.getParts(), op.getBuffers())) {
      const layout::Layout &layout = kgpu::layoutOf(part);
      auto type = cast<kgpu::SharedType>(buffer.getType());
      unsigned elementBytes = type.getElementBytes();
      llvm::Expected<layout::SharedAccess> access = layout::planAccess(layout, type.getPlacement(), elementBytes);
      if (!access)
        return op.emitOpError() << "cannot reach its buffer: " << llvm::toString(access.takeError());
      SharedAddresses addresses(builder, *access, scalar(buffer), place.bits(layout));
      ValueRange held = registersOf(part);
      for (const layout::SharedAccess::Vector &vector : access->vectors)
        ptx::sendAndSignal(builder, remoteAddress(builder, addresses.of(vector), rank),
                           bitsOfElement(builder, held[vector.registers.front()]), signal);
    }
  }
  ptx::barrierWait(builder, barrier, parity);
  return success();
}
} // namespace kpkg::lower::nvvm
