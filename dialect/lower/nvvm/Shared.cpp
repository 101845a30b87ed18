// Buffers in shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/SharedMemory.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

LogicalResult Emitter::emitAlloc(kgpu::AllocOp op) {
  if (!op.getOffset())
    return op.emitOpError("has no offset yet: shared memory is not allocated");
  if (!sharedMemory)
    return op.emitOpError("is in a kernel whose launch has no shared memory");
  Value address = LLVM::GEPOp::create(builder, sharedMemory.getType(), builder.getI8Type(), sharedMemory,
                                      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(*op.getOffset())});
  define(op, {address});
  return success();
}

LogicalResult Emitter::emitSlot(kgpu::SlotOp op) {
  auto buffer = cast<kgpu::SharedType>(op.getBuffer().getType());
  SmallVector<int64_t> second(buffer.getShape().size(), 0);
  second.front() = 1;
  int64_t bytes = buffer.getShape().front() > 1 ? buffer.getPlacement().offset(second) : 0;
  Value index = arith::IndexCastOp::create(builder, builder.getI32Type(), scalar(op.getIndex()));
  Value distance = arith::MulIOp::create(builder, index, constantOf(builder, bytes));
  Value base = scalar(op.getBuffer());
  define(op, {LLVM::GEPOp::create(builder, base.getType(), builder.getI8Type(), base, ValueRange{distance}).getResult()});
  return success();
}

LogicalResult Emitter::emitLocalStore(kgpu::LocalStoreOp op) {
  const layout::Layout &layout = kgpu::layoutOf(op.getValue());
  auto buffer = cast<kgpu::SharedType>(op.getBuffer().getType());
  llvm::Expected<layout::SharedAccess> access = layout::planAccess(layout, buffer.getPlacement());
  if (!access)
    return op.emitOpError() << "cannot reach its buffer: " << llvm::toString(access.takeError());
  storeShared(builder, *access, scalar(op.getBuffer()), place.bits(layout), registersOf(op.getValue()), place.isFirstReplica(layout));
  return success();
}

LogicalResult Emitter::emitLocalLoad(kgpu::LocalLoadOp op) {
  const layout::Layout &layout = kgpu::layoutOf(op.getResult());
  auto buffer = cast<kgpu::SharedType>(op.getBuffer().getType());
  llvm::Expected<layout::SharedAccess> access = layout::planAccess(layout, buffer.getPlacement());
  if (!access)
    return op.emitOpError() << "cannot reach its buffer: " << llvm::toString(access.takeError());
  Type element = cast<RankedTensorType>(op.getResult().getType()).getElementType();
  define(op, TileRegisters(loadShared(builder, *access, scalar(op.getBuffer()), place.bits(layout), element)));
  return success();
}

} // namespace kpkg::lower::nvvm
