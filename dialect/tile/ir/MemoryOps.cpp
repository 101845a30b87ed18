// Implements verifiers and text forms of memory ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/TileDialect.h"

using namespace mlir;
using namespace kpkg::tile;

template <typename Op> static LogicalResult verifyQuery(Op op) {
  int64_t rank = op.getView().getType().getRank();
  if (op.getDimension() >= static_cast<uint64_t>(rank))
    return op.emitOpError() << "asks for dimension " << op.getDimension() << " of a view of rank " << rank;
  return success();
}

LogicalResult DimOp::verify() { return verifyQuery(*this); }
LogicalResult StrideOp::verify() { return verifyQuery(*this); }

Value kpkg::tile::sourceOfPart(Value view) {
  if (auto drop = view.getDefiningOp<DropOp>())
    return drop.getView();
  if (auto slice = view.getDefiningOp<SliceOp>())
    return slice.getView();
  return {};
}

Value kpkg::tile::argumentOf(Value view) {
  while (Value source = sourceOfPart(view))
    view = source;
  return view;
}

void kpkg::tile::inferParts(KernelOp kernel) {
  kernel.walk<WalkOrder::PreOrder>([](Operation *op) {
    if (auto drop = dyn_cast<DropOp>(op))
      drop.getResult().setType(drop.getView().getType().drop(drop.getDims()));
    if (auto slice = dyn_cast<SliceOp>(op))
      slice.getResult().setType(slice.getView().getType().slice(slice.getDimension()));
  });
}

ViewType ScratchOp::typeOf(ArrayRef<int64_t> shape, Type element) {
  constexpr int64_t align = 16;
  int64_t last = shape.back();
  ViewFacts facts{.unit = int64_t(shape.size()) - 1, .align = align, .index = 32};
  facts.divisible = std::min<int64_t>(last & -last, align);
  return ViewType::get(shape.size(), element, /*isMut=*/true, facts);
}

void ScratchOp::build(OpBuilder &builder, OperationState &state, ArrayRef<int64_t> shape, Type element) {
  build(builder, state, typeOf(shape, element), shape);
}

int64_t ScratchOp::getStride(int64_t dimension) { return llvm::product_of(getShape().drop_front(dimension + 1)); }

LogicalResult ScratchOp::verify() {
  ViewType type = getResult().getType();
  if (!isTileShape(RankedTensorType::get(getShape(), type.getElementType())))
    return emitOpError() << "has the extents of no tile: [" << getShape() << "]";
  ViewType expected = typeOf(getShape(), type.getElementType());
  if (type.getRank() != int64_t(getShape().size()) || !type.getIsMut() || !expected.implies(type))
    return emitOpError() << "provides " << expected << ", not " << type;
  return success();
}

LogicalResult DropOp::verify() {
  ViewType source = getView().getType(), result = getResult().getType();
  if (getDims().size() != getIndices().size())
    return emitOpError() << "drops " << getDims().size() << " dimensions with " << getIndices().size() << " indices";
  int64_t last = -1;
  for (int64_t dim : getDims()) {
    if (dim <= last || dim >= source.getRank())
      return emitOpError() << "dimensions must be ascending and below rank " << source.getRank();
    last = dim;
  }
  ViewType expected = source.drop(getDims());
  if (!expected.implies(result))
    return emitOpError() << "gives " << expected << ", not " << result;
  return success();
}

LogicalResult SliceOp::verify() {
  ViewType source = getView().getType(), result = getResult().getType();
  if (static_cast<int64_t>(getDimension()) >= source.getRank())
    return emitOpError() << "slices dimension " << getDimension() << " of a view of rank " << source.getRank();
  ViewType expected = source.slice(getDimension());
  if (!expected.implies(result))
    return emitOpError() << "gives " << expected << ", not " << result;
  return success();
}

/// Verifies a load or a store: one offset per dimension, and a tile of the view's rank and element type.
static LogicalResult verifyAccess(Operation *op, ViewType view, size_t offsets, Type value) {
  if (offsets != static_cast<size_t>(view.getRank()))
    return op->emitOpError() << "has " << offsets << " offsets for a view of rank " << view.getRank();
  if (getElementTypeOrSelf(value) != view.getElementType())
    return op->emitOpError() << "moves " << value << " but the view holds " << view.getElementType();
  auto tile = dyn_cast<RankedTensorType>(value);
  if ((tile ? tile.getRank() : 0) != view.getRank())
    return op->emitOpError() << "moves " << value << ", whose rank is not the view's (" << view.getRank() << ")";
  return success();
}

static LogicalResult verifyWritable(Operation *op, ViewType view) {
  if (!view.getIsMut())
    return op->emitOpError() << "writes to a view that is not `mut`: " << view;
  return success();
}

static LogicalResult verifyUpdated(Operation *op, AtomicKind kind, Type element) {
  bool isNarrowSum = kind == AtomicKind::Add && (element.isF16() || element.isBF16());
  if (!element.isF32() && !element.isF64() && !element.isInteger(32) && !element.isInteger(64) && !element.isIndex() &&
      !isNarrowSum)
    return op->emitOpError() << (kind == AtomicKind::Add
                                     ? "adds to elements of f16, bf16, f32, f64, i32, i64 or index, not "
                                     : "updates elements of f32, f64, i32, i64 or index, not ")
                             << element;
  return success();
}

LogicalResult LoadOp::verify() {
  return verifyAccess(*this, getView().getType(), getOffsets().size(), getResult().getType());
}

LogicalResult StoreOp::verify() {
  if (failed(verifyWritable(*this, getView().getType())))
    return failure();
  return verifyAccess(*this, getView().getType(), getOffsets().size(), getValue().getType());
}

LogicalResult AddStoreOp::verify() {
  ViewType view = getView().getType();
  if (failed(verifyUpdated(*this, AtomicKind::Add, view.getElementType())) || failed(verifyWritable(*this, view)))
    return failure();
  return verifyAccess(*this, view, getOffsets().size(), getValue().getType());
}

/// Verifies a gather or a scatter: one index tile per dimension of the view, and a mask, all of the value's shape.
static LogicalResult verifyIndexed(Operation *op, ViewType view, ValueRange indices, Value mask, Type value) {
  auto tile = cast<RankedTensorType>(value);
  if (indices.empty() || indices.size() != static_cast<size_t>(view.getRank()))
    return op->emitOpError() << "has " << indices.size() << " index tiles for a view of rank " << view.getRank()
                             << "; it needs one per dimension, and at least one";
  if (tile.getElementType() != view.getElementType())
    return op->emitOpError() << "moves " << value << " but the view holds " << view.getElementType();
  for (Value index : indices)
    if (cast<RankedTensorType>(index.getType()).getShape() != tile.getShape())
      return op->emitOpError() << "index tile " << index.getType() << " has not the shape of " << value;
  if (mask && cast<RankedTensorType>(mask.getType()).getShape() != tile.getShape())
    return op->emitOpError() << "mask " << mask.getType() << " has not the shape of " << value;
  return success();
}

LogicalResult GatherOp::verify() {
  return verifyIndexed(*this, getView().getType(), getIndices(), getMask(), getResult().getType());
}

LogicalResult ScatterOp::verify() {
  if (failed(verifyWritable(*this, getView().getType())))
    return failure();
  return verifyIndexed(*this, getView().getType(), getIndices(), getMask(), getValue().getType());
}

LogicalResult AtomicOp::verify() {
  Type element = getView().getType().getElementType();
  if (failed(verifyUpdated(*this, getKind(), element)))
    return failure();
  if (isa<FloatType>(element) && (getKind() == AtomicKind::UMax || getKind() == AtomicKind::UMin))
    return emitOpError() << "takes floats as unsigned numbers";
  if ((getKind() == AtomicKind::CompareExchange) != bool(getExpected()))
    return emitOpError() << "has `expected` if and only if it is a compare_exchange";
  for (Value other : {getExpected(), getOld()})
    if (other && other.getType() != getValue().getType())
      return emitOpError() << "exchanges " << getValue().getType() << " for " << other.getType();
  if (failed(verifyWritable(*this, getView().getType())))
    return failure();
  return verifyIndexed(*this, getView().getType(), getIndices(), getMask(), getValue().getType());
}
