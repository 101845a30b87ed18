// Verifiers of ops on shared memory, and their accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::kgpu;

#define GET_OP_CLASSES
#include "dialect/kgpu/ir/KgpuOps.cpp.inc"

using Scope = SharedMemoryAccess::Scope;

SharedType kgpu::ringOf(int64_t slots, SharedType slot) {
  SmallVector<int64_t> shape(slot.getShape());
  shape.insert(shape.begin(), slots);
  return SharedType::get(shape, slot.getElementType(), layout::withSlots(slot.getPlacement(), slots));
}

LogicalResult SlotOp::verify() {
  SharedType from = getBuffer().getType(), to = getType();
  if (from.getShape().drop_front() != to.getShape() || from.getElementType() != to.getElementType() ||
      from.getShape().size() == 1)
    return emitOpError() << "a part of " << from << " along its first dimension is not " << to;
  bool hasMemory = from.getMemory() || to.getMemory();
  if (hasMemory && (!to.getMemory() || from.getMemory() != layout::withSlots(*to.getMemory(), from.getShape().front())))
    return emitOpError() << from << " is not made of slots like " << to;
  return success();
}

LogicalResult ReshapeBufferOp::verify() {
  SharedType from = getBuffer().getType(), to = getType();
  if (from.getElementType() != to.getElementType() ||
      llvm::product_of(from.getShape()) != llvm::product_of(to.getShape()))
    return emitOpError() << from << " and " << to << " do not have the same elements";
  if (from.getMemory() || to.getMemory())
    return emitOpError("only buffers in row-major order have other shapes");
  return success();
}

LogicalResult TransposeBufferOp::verify() {
  SharedType from = getBuffer().getType(), to = getType();
  bool isTransposed = from.getShape().size() == 2 &&
                      to.getShape() == ArrayRef<int64_t>{from.getShape()[1], from.getShape()[0]} &&
                      from.getElementType() == to.getElementType() && to.getMemory() &&
                      *to.getMemory() == layout::transposed(from.getPlacement());
  return isTransposed ? success()
                      : LogicalResult(emitOpError() << from << " with rows and columns exchanged is not " << to);
}

void TransposeBufferOp::build(OpBuilder &builder, OperationState &state, Value buffer) {
  auto type = cast<SharedType>(buffer.getType());
  build(builder, state,
        SharedType::get({type.getShape()[1], type.getShape()[0]}, type.getElementType(),
                        layout::transposed(type.getPlacement())),
        buffer);
}

/// Returns the type of the elements at `steps` of a buffer in row-major order.
static SharedType sliced(SharedType from, ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  layout::SharedLayout::Fields fields;
  fields.elementBytes = from.getElementBytes();
  fields.bases.resize(sizes.size());
  fields.repeats.assign(sizes.begin(), sizes.end());
  fields.strides.resize(sizes.size());
  int64_t stride = from.getElementBytes();
  for (size_t dim = sizes.size(); dim-- > 0; stride *= from.getShape()[dim])
    fields.strides[dim] = stride * steps[dim];
  llvm::Expected<layout::SharedLayout> memory = layout::SharedLayout::get(std::move(fields));
  return SharedType::get(sizes, from.getElementType(), llvm::cantFail(std::move(memory)));
}

int64_t SliceBufferOp::getOffsetBytes() {
  SharedType from = getBuffer().getType();
  int64_t stride = from.getElementBytes(), bytes = 0;
  for (size_t dim = from.getShape().size(); dim-- > 0; stride *= from.getShape()[dim])
    bytes += getOffsets()[dim] * stride;
  return bytes;
}

void SliceBufferOp::build(OpBuilder &builder, OperationState &state, Value buffer, ArrayRef<int64_t> offsets,
                          ArrayRef<int64_t> sizes, ArrayRef<int64_t> steps) {
  build(builder, state, sliced(cast<SharedType>(buffer.getType()), sizes, steps), buffer, offsets, steps);
}

LogicalResult SliceBufferOp::verify() {
  SharedType from = getBuffer().getType(), to = getType();
  size_t rank = from.getShape().size();
  if (from.getMemory() || to.getShape().size() != rank || getOffsets().size() != rank || getSteps().size() != rank)
    return emitOpError() << "needs a buffer in row-major order, and an offset and a step for each dimension";
  for (auto [dim, offset, step] : llvm::enumerate(getOffsets(), getSteps())) {
    int64_t last = offset + step * (to.getShape()[dim] - 1);
    if (step == 0 || std::min(offset, last) < 0 || std::max(offset, last) >= from.getShape()[dim])
      return emitOpError() << "reaches elements " << offset << " to " << last << " of dimension " << dim << " of "
                           << from;
  }
  if (to != sliced(from, to.getShape(), getSteps()))
    return emitOpError() << from << " at these steps is not " << to;
  return success();
}

void ViewBufferOp::build(OpBuilder &builder, OperationState &state, Value buffer) {
  auto type = cast<SharedType>(buffer.getType());
  build(builder, state, tile::ScratchOp::typeOf(type.getShape(), type.getElementType()), buffer);
}

LogicalResult ViewBufferOp::verify() {
  SharedType from = getBuffer().getType();
  if (from.getMemory())
    return emitOpError("views only buffers in row-major order");
  tile::ViewType to = getType(), expected = tile::ScratchOp::typeOf(from.getShape(), from.getElementType());
  return expected.implies(to) ? success() : LogicalResult(emitOpError() << from << " is not seen as " << to);
}

Value kgpu::aliasedBuffer(Operation *op) {
  if (auto slot = dyn_cast_or_null<SlotOp>(op))
    return slot.getBuffer();
  if (auto reshape = dyn_cast_or_null<ReshapeBufferOp>(op))
    return reshape.getBuffer();
  if (auto transpose = dyn_cast_or_null<TransposeBufferOp>(op))
    return transpose.getBuffer();
  if (auto slice = dyn_cast_or_null<SliceBufferOp>(op))
    return slice.getBuffer();
  if (auto view = dyn_cast_or_null<ViewBufferOp>(op))
    return view.getBuffer();
  return op && isa<tile::DropOp, tile::SliceOp>(op) ? op->getOperand(0) : Value();
}

SmallVector<SharedMemoryAccess> kgpu::sharedAccessesOf(Operation *op) {
  SmallVector<SharedMemoryAccess> accesses;
  auto add = [&](Value view, bool isWrite, Scope scope = Scope::Cta) {
    if (tile::argumentOf(view).getDefiningOp<ViewBufferOp>())
      accesses.push_back({view, isWrite, scope});
  };
  TypeSwitch<Operation *>(op)
      .Case([&](SharedAccessOpInterface access) { access.getSharedAccesses(accesses); })
      .Case<tile::LoadOp, tile::GatherOp>([&](auto read) { add(read.getView(), /*isWrite=*/false); })
      .Case<tile::StoreOp, tile::ScatterOp>([&](auto write) { add(write.getView(), /*isWrite=*/true); })
      .Case([&](tile::AtomicOp update) { add(update.getView(), /*isWrite=*/true, Scope::Update); });
  return accesses;
}

/// Checks a move between a tile and a buffer.
static LogicalResult verifyMove(Operation *op, Type tile, SharedType buffer) {
  auto tensor = cast<RankedTensorType>(tile);
  if (!hasLayout(tensor))
    return op->emitOpError() << "needs a layout on " << tensor;
  if (tensor.getShape() != buffer.getShape() || tensor.getElementType() != buffer.getElementType())
    return op->emitOpError() << "moves " << tensor << ", which is not the tile of " << buffer;
  return success();
}

LogicalResult LocalStoreOp::verify() { return verifyMove(*this, getValue().getType(), getBuffer().getType()); }
LogicalResult RemoteStoreOp::verify() { return verifyMove(*this, getValue().getType(), getBuffer().getType()); }
LogicalResult LocalLoadOp::verify() {
  SharedType buffer = getBuffer().getType();
  if (!getAt())
    return verifyMove(*this, getType(), buffer);
  auto tile = cast<RankedTensorType>(getType());
  ArrayRef<int64_t> at = *getAt();
  if (tile.getRank() != int64_t(buffer.getShape().size()) || at.size() != buffer.getShape().size() || !hasLayout(tile))
    return emitOpError() << "reads " << tile << " at [" << at << "] of " << buffer;
  auto shape = layoutOf(tile).shape();
  for (auto [begin, extent, whole] : llvm::zip_equal(at, shape, buffer.getShape()))
    if (begin < 0 || begin % extent != 0 || begin + extent > whole)
      return emitOpError() << "reads at [" << at << "], which is no place for a layout of [" << shape << "] in "
                           << buffer;
  return verifyMove(*this, tile, SharedType::get(tile.getShape(), buffer.getElementType()));
}

void LocalStoreOp::getSharedAccesses(SmallVectorImpl<SharedMemoryAccess> &accesses) {
  accesses.push_back({getBuffer(), /*isWrite=*/true, getAhead() ? Scope::Ring : Scope::Cta});
}
void RemoteStoreOp::getSharedAccesses(SmallVectorImpl<SharedMemoryAccess> &accesses) {
  accesses.push_back({getBuffer(), /*isWrite=*/true, Scope::Cluster});
}
void LocalLoadOp::getSharedAccesses(SmallVectorImpl<SharedMemoryAccess> &accesses) {
  accesses.push_back({getBuffer(), /*isWrite=*/false, Scope::Cta});
}
