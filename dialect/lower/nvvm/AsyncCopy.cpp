// Emits copies from global to shared memory that bypass registers (cp.async).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/SharedMemory.h"
#include "dialect/lower/nvvm/TileAccess.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "mlir/IR/Matchers.h"

namespace kpkg::lower::nvvm {
/// Plans where vectors of `bytes` bytes lie in the buffer that `op` copies to.
static FailureOr<layout::SharedAccess> placesOf(Operation *op, const Layout &layout, kgpu::SharedType buffer,
                                                unsigned bytes) {
  if (bytes < 4)
    return op->emitOpError() << "has vectors of " << bytes << " bytes; copies are of 4, 8 or 16";
  llvm::Expected<layout::SharedAccess> places = layout::planAccess(layout, buffer.getPlacement(), bytes);
  if (!places)
    return op->emitOpError() << "cannot reach its buffer: " << llvm::toString(places.takeError());
  if (places->vectorBytes != bytes)
    return op->emitOpError() << "has vectors of " << bytes << " bytes, but its buffer has only " << places->vectorBytes
                             << " together";
  return std::move(*places);
}

LogicalResult Emitter::emitAsyncCopy(kgpu::AsyncCopyOp op) {
  const Layout &layout = op.getLayout().getLayout();
  auto buffer = cast<kgpu::SharedType>(op.getBuffer().getType());
  auto type = RankedTensorType::get(buffer.getShape(), buffer.getElementType());
  TileAccess access(*this, view(op.getView()), op.getOffsets(), type, layout);
  auto groups = access.groups();
  unsigned bytes = groups.front().size() * buffer.getElementBytes();
  FailureOr<layout::SharedAccess> places = placesOf(op, layout, buffer, bytes);
  if (failed(places))
    return failure();
  SharedAddresses addresses(builder, *places, scalar(op.getBuffer()), place.bits(layout));
  Value inside = op.getInside() ? scalar(op.getInside()) : Value(), first = place.isFirstInCta(layout);
  // Measured on an H200: when gathers use the L1 cache, copies of the other operand through L1 are faster too.
  bool isBesideGathers = op->getParentOfType<tile::KernelOp>()
                             .walk([](kgpu::AsyncGatherOp) { return WalkResult::interrupt(); })
                             .wasInterrupted();
  OpBuilder::InsertionGuard guard(builder);
  if (first)
    builder.setInsertionPointToStart(scf::IfOp::create(builder, first, /*withElseRegion=*/false).thenBlock());
  for (const layout::SharedAccess::Vector &vector : places->vectors) {
    unsigned reg = vector.registers.front();
    Value mask = access.mask(reg);
    if (inside)
      mask = mask ? arith::AndIOp::create(builder, mask, inside).getResult() : inside;
    asyncCopy(builder, addresses.of(vector), access.address(reg), bytes, mask, isBesideGathers);
  }
  return success();
}

LogicalResult Emitter::emitAsyncGather(kgpu::AsyncGatherOp op) {
  auto indices = cast<RankedTensorType>(op.getIndices().front().getType());
  const Layout &layout = kgpu::layoutOf(indices);
  auto buffer = cast<kgpu::SharedType>(op.getBuffer().getType());
  auto type = RankedTensorType::get(indices.getShape(), buffer.getElementType(), indices.getEncoding());
  int64_t together = tile::neighboursOf(op.getView().getType(), op.getIndices(), indices.getShape());
  unsigned bytes = layout.vectorLength(1, together) * buffer.getElementBytes();
  FailureOr<layout::SharedAccess> places = placesOf(op, layout, buffer, bytes);
  if (failed(places))
    return failure();
  SharedAddresses addresses(builder, *places, scalar(op.getBuffer()), place.bits(layout));
  Value first = place.isFirstInCta(layout);
  OpBuilder::InsertionGuard guard(builder);
  if (first)
    builder.setInsertionPointToStart(scf::IfOp::create(builder, first, /*withElseRegion=*/false).thenBlock());
  for (const layout::SharedAccess::Vector &vector : places->vectors) {
    auto [address, mask] = elementAt(view(op.getView()), op.getIndices(), Value(), type, vector.registers.front());
    if (op.getInside())
      mask = arith::AndIOp::create(builder, mask, scalar(op.getInside()));
    asyncCopy(builder, addresses.of(vector), address, bytes, mask, /*isReadAgain=*/true);
  }
  return success();
}

/// Returns the address of vector number `number` of this thread in the fetch buffer.
static Value fetchedVector(ImplicitLocOpBuilder &builder, Value buffer, Value thread, unsigned threads, unsigned number,
                           unsigned bytes) {
  Value own = arith::MulIOp::create(builder, thread, constantOf(builder, bytes));
  return bytesBehind(builder, bytesBehind(builder, buffer, own), int64_t(number) * threads * bytes);
}

LogicalResult Emitter::emitFetch(kgpu::FetchOp op) {
  auto type = cast<RankedTensorType>(op.getTile());
  TileAccess access(*this, view(op.getView()), op.getOffsets(), type, kgpu::layoutOf(type));
  unsigned bytes = access.groups().front().size() * op.getView().getType().getElementBytes();
  if (bytes < 4)
    return op.emitOpError() << "has vectors of " << bytes << " bytes; copies are of 4, 8 or 16";
  Value inside = scalar(op.getInside()), buffer = scalar(op.getBuffer());
  for (auto [number, group] : llvm::enumerate(access.groups())) {
    Value mask = access.mask(group.front());
    mask = mask ? arith::AndIOp::create(builder, mask, inside).getResult() : inside;
    asyncCopy(builder, fetchedVector(builder, buffer, place.thread(), launch.threads, number, bytes),
              access.address(group.front()), bytes, mask);
  }
  return success();
}

LogicalResult Emitter::emitTouch(kgpu::TouchOp op) {
  const View &part = view(op.getView());
  Value thread = arith::IndexCastUIOp::create(builder, builder.getIndexType(), place.thread());
  int64_t count = cast<RankedTensorType>(op.getTile()).getNumElements();
  Value at = arith::AddIOp::create(builder, scalar(op.getOffsets().front()), thread);
  auto isLess = [&](Value left, Value right) {
    return arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, left, right);
  };
  Value mask = arith::AndIOp::create(builder, isLess(thread, arith::ConstantIndexOp::create(builder, count)),
                                     isLess(at, part.shape.front()));
  mask = arith::AndIOp::create(builder, mask, scalar(op.getInside()));
  Value bytes = arith::MulIOp::create(
      builder, at, arith::ConstantIndexOp::create(builder, op.getView().getType().getElementBytes()));
  Value address = LLVM::GEPOp::create(builder, part.pointer.getType(), builder.getI8Type(), part.pointer,
                                      arith::IndexCastOp::create(builder, builder.getI64Type(), bytes).getResult());
  ptx::prefetchWhere(builder, address, mask);
  return success();
}

LogicalResult Emitter::emitFetched(kgpu::FetchedOp op) {
  const Layout &layout = kgpu::layoutOf(op.getResult());
  auto type = cast<RankedTensorType>(op.getType());
  Type element = type.getElementType();
  TileAccess access(*this, view(op.getView()), op.getOffsets(), type, layout);
  auto groups = access.groups();
  unsigned bytes = groups.front().size() * op.getView().getType().getElementBytes();
  if (bytes < 4)
    return op.emitOpError() << "has vectors of " << bytes << " bytes; copies are of 4, 8 or 16";
  bool fillsZero = matchPattern(op.getFill(), m_PosZeroFloat()) || matchPattern(op.getFill(), m_Zero());
  // Issues all loads before their first use.
  SmallVector<SmallVector<Value>> loaded;
  for (unsigned number = 0; number < groups.size(); ++number)
    loaded.push_back(ptx::wordsAt(
        builder, fetchedVector(builder, scalar(op.getBuffer()), place.thread(), launch.threads, number, bytes),
        bytes / 4));
  SmallVector<Value> fill;
  if (!fillsZero)
    fill = packWords(builder, SmallVector<Value>(groups.front().size(), scalar(op.getFill())));
  TileRegisters values(layout.registers());
  for (auto [group, words] : llvm::zip_equal(groups, loaded)) {
    Value mask = fillsZero ? Value() : access.mask(group.front());
    if (mask)
      for (auto [word, other] : llvm::zip_equal(words, fill))
        word = arith::SelectOp::create(builder, mask, word, other);
    for (auto [reg, value] : llvm::zip_equal(group, unpackWords(builder, words, element, group.size())))
      values[reg] = value;
  }
  define(op, std::move(values));
  return success();
}
} // namespace kpkg::lower::nvvm
