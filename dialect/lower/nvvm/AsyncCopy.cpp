// Copies from global to shared memory that pass by the registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/SharedMemory.h"
#include "dialect/lower/nvvm/TileAccess.h"

namespace kpkg::lower::nvvm {
LogicalResult Emitter::emitAsyncCopy(kgpu::AsyncCopyOp op) {
  const Layout &layout = op.getLayout().getLayout();
  auto buffer = cast<kgpu::SharedType>(op.getBuffer().getType());
  auto type = RankedTensorType::get(buffer.getShape(), buffer.getElementType());
  TileAccess access(*this, view(op.getView()), op.getOffsets(), type, layout);
  auto groups = access.groups();
  unsigned bytes = groups.front().size() * buffer.getElementBytes();
  if (bytes < 4)
    return op.emitOpError() << "has vectors of " << bytes << " bytes; copies are of 4, 8 or 16";
  llvm::Expected<layout::SharedAccess> places = layout::planAccess(layout, buffer.getPlacement(), bytes);
  if (!places)
    return op.emitOpError() << "cannot reach its buffer: " << llvm::toString(places.takeError());
  if (places->vectorBytes != bytes)
    return op.emitOpError() << "has vectors of " << bytes << " bytes, but its buffer has only " << places->vectorBytes << " together";
  SharedAddresses addresses(builder, *places, scalar(op.getBuffer()), place.bits(layout));
  Value inside = op.getInside() ? scalar(op.getInside()) : Value(), first = place.isFirstInCta(layout);
  OpBuilder::InsertionGuard guard(builder);
  if (first)
    builder.setInsertionPointToStart(scf::IfOp::create(builder, first, /*withElseRegion=*/false).thenBlock());
  for (const layout::SharedAccess::Vector &vector : places->vectors) {
    unsigned reg = vector.registers.front();
    Value mask = access.mask(reg);
    if (inside)
      mask = mask ? arith::AndIOp::create(builder, mask, inside).getResult() : inside;
    asyncCopy(builder, addresses.of(vector), access.address(reg), bytes, mask);
  }
  return success();
}
} // namespace kpkg::lower::nvvm
