// Verifiers, builders and folders of ops on tiles with layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/layout/Algebra.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::kgpu;

/// Checks that every tile of the op has a layout.
static LogicalResult verifyHasLayouts(Operation *op) {
  for (Value value : llvm::concat<Value>(op->getOperands(), op->getResults()))
    if (isa<RankedTensorType>(value.getType()) && !hasLayout(value.getType()))
      return op->emitOpError() << "needs a layout on " << value.getType();
  return success();
}

LogicalResult CvtLayoutOp::verify() {
  auto from = cast<RankedTensorType>(getValue().getType()), to = cast<RankedTensorType>(getType());
  if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
    return emitOpError() << "changes only the layout, not " << from << " to " << to;
  return verifyHasLayouts(*this);
}

OpFoldResult CvtLayoutOp::fold(FoldAdaptor) {
  if (getValue().getType() == getType())
    return getValue();
  if (auto inner = getValue().getDefiningOp<CvtLayoutOp>()) {
    getValueMutable().assign(inner.getValue());
    return getResult();
  }
  return {};
}

/// Returns the type after a reduction within each warp, or null after an error.
static RankedTensorType partialType(Operation *op, RankedTensorType type, int64_t axis) {
  if (axis >= type.getRank()) {
    op->emitOpError() << "axis " << axis << " is not a dimension of " << type;
    return {};
  }
  llvm::Expected<layout::Layout> layout = partialLayout(layoutOf(type), axis);
  if (!layout) {
    op->emitOpError() << llvm::toString(layout.takeError());
    return {};
  }
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = partialExtent(layoutOf(type), axis);
  return RankedTensorType::get(shape, type.getElementType(), LayoutAttr::get(type.getContext(), *layout));
}

static LogicalResult verifyPartial(Operation *op, Type operand, int64_t axis, Type result) {
  RankedTensorType expected = partialType(op, cast<RankedTensorType>(operand), axis);
  if (!expected)
    return failure();
  if (result != expected)
    return op->emitOpError() << "gives " << expected << ", not " << result;
  return success();
}

void PartialReduceOp::build(OpBuilder &builder, OperationState &state, tile::ReduceKind kind, Value value,
                            int64_t axis) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = partialExtent(layoutOf(type), axis);
  auto layout = LayoutAttr::get(type.getContext(), llvm::cantFail(partialLayout(layoutOf(type), axis)));
  build(builder, state, RankedTensorType::get(shape, type.getElementType(), layout), kind, value, axis);
}

LogicalResult PartialReduceOp::verify() {
  if (failed(verifyHasLayouts(*this)))
    return failure();
  return verifyPartial(*this, getValue().getType(), getAxis(), getType());
}

LogicalResult ColumnsOp::verify() {
  if (failed(verifyHasLayouts(*this)))
    return failure();
  auto whole = cast<RankedTensorType>(getValue().getType()), part = cast<RankedTensorType>(getType());
  if (whole.getRank() != 2 || part.getRank() != 2 || whole.getDimSize(0) != part.getDimSize(0) ||
      int64_t(getFirst()) + part.getDimSize(1) > whole.getDimSize(1))
    return emitOpError() << "cannot take columns from " << getFirst() << " as " << part << " of " << whole;
  return success();
}

LogicalResult JoinColumnsOp::verify() {
  if (failed(verifyHasLayouts(*this)))
    return failure();
  auto whole = cast<RankedTensorType>(getType());
  auto fits = [&](Value value) {
    auto part = cast<RankedTensorType>(value.getType());
    return part == getParts().front().getType() && part.getRank() == 2 &&
           part.getElementType() == whole.getElementType() && part.getDimSize(0) == whole.getDimSize(0) &&
           part.getDimSize(1) * int64_t(getParts().size()) == whole.getDimSize(1);
  };
  if (getParts().empty() || whole.getRank() != 2 || !llvm::all_of(getParts(), fits))
    return emitOpError() << "needs parts that side by side are " << whole;
  return success();
}

LogicalResult OwnPartOp::verify() {
  if (failed(verifyHasLayouts(*this)))
    return failure();
  RankedTensorType expected = partialType(*this, cast<RankedTensorType>(getType()), getAxis());
  if (!expected)
    return failure();
  if (getPart().getType() != expected)
    return emitOpError() << "takes " << expected << ", not " << getPart().getType();
  return success();
}

LogicalResult SharePartsOp::verify() {
  if (failed(verifyHasLayouts(*this)))
    return failure();
  if (getParts().empty() || getParts().size() != getOutputs().size())
    return emitOpError("takes at least one tile and has as many results");
  for (auto [part, output] : llvm::zip_equal(getParts(), getOutputs())) {
    auto from = cast<RankedTensorType>(part.getType()), to = cast<RankedTensorType>(output.getType());
    if (int64_t(getAxis()) >= from.getRank())
      return emitOpError() << "axis " << getAxis() << " is not a dimension of " << from;
    if (from.getShape() != to.getShape() || from.getElementType() != to.getElementType())
      return emitOpError() << "changes only layouts, not " << from << " to " << to;
    if (from.getEncoding() != cast<RankedTensorType>(getParts()[0].getType()).getEncoding())
      return emitOpError() << "parts have one layout, but " << from << " differs from " << getParts()[0].getType();
    if (!isWithinWarp(layoutOf(to), getAxis()))
      return emitOpError() << "leaves the parts in several warps: " << to;
  }
  return success();
}

/// Checks that the region takes two elements of each tile and yields one.
static LogicalResult verifyBody(Operation *op, Region &region, ArrayRef<Type> elements) {
  SmallVector<Type> arguments(elements);
  llvm::append_range(arguments, elements);
  Block &body = region.front();
  if (body.getArgumentTypes() != TypeRange(arguments))
    return op->emitOpError() << "body takes (" << arguments << ")";
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || TypeRange(yield.getValues().getTypes()) != TypeRange(elements))
    return op->emitOpError() << "body yields (" << elements << ")";
  return success();
}

LogicalResult PartialCombineOp::verifyRegions() {
  if (failed(verifyHasLayouts(*this)))
    return failure();
  if (getInputs().empty() || getOutputs().size() != getInputs().size())
    return emitOpError("needs at least one input and has as many results");
  SmallVector<Type> elements;
  for (auto [input, init, output] : llvm::zip_equal(getInputs(), getInits(), getOutputs())) {
    auto type = cast<RankedTensorType>(input.getType()), first = cast<RankedTensorType>(getInputs()[0].getType());
    if (type.getShape() != first.getShape() || type.getEncoding() != first.getEncoding())
      return emitOpError() << "inputs have one shape and layout, but " << type << " differs from " << first;
    if (init.getType() != type.getElementType())
      return emitOpError() << "init " << init.getType() << " is not an element of " << type;
    if (failed(verifyPartial(*this, type, getAxis(), output.getType())))
      return failure();
    elements.push_back(type.getElementType());
  }
  return verifyBody(*this, getBody(), elements);
}

/// Checks that all tiles have one shape and layout.
static LogicalResult verifyAlike(Operation *op, ValueRange tiles) {
  auto first = cast<RankedTensorType>(tiles.front().getType());
  for (Value tile : tiles) {
    auto type = cast<RankedTensorType>(tile.getType());
    if (type.getShape() != first.getShape() || type.getEncoding() != first.getEncoding())
      return op->emitOpError() << "takes tiles of one shape and layout, but " << type << " differs from " << first;
  }
  return success();
}

LogicalResult PartialScanOp::verifyRegions() {
  if (failed(verifyHasLayouts(*this)))
    return failure();
  if (getInputs().empty() || getOutputs().size() != getInputs().size())
    return emitOpError("needs at least one input, and has two results for each");
  if (failed(verifyAlike(*this, getInputs())))
    return failure();
  const layout::Layout &layout = layoutOf(getInputs().front());
  if (getAxis() >= layout.rank() || !isWithinWarp(layout, getAxis()))
    return emitOpError() << "needs an axis within a warp, unlike " << getAxis() << " of "
                         << getInputs().front().getType();
  llvm::Expected<layout::Layout> sliced = layout::slice(layout, getAxis());
  if (!sliced)
    return emitOpError() << llvm::toString(sliced.takeError());
  SmallVector<Type> elements;
  for (auto [input, output, total] : llvm::zip_equal(getInputs(), getOutputs(), getTotals())) {
    auto type = cast<RankedTensorType>(input.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[getAxis()] = 1;
    Type expected = withLayout(RankedTensorType::get(shape, type.getElementType()), *sliced);
    if (output.getType() != type || total.getType() != expected)
      return emitOpError() << "gives " << type << " and " << expected << ", not " << output.getType() << " and "
                           << total.getType();
    elements.push_back(type.getElementType());
  }
  return verifyBody(*this, getBody(), elements);
}

LogicalResult PutBeforeOp::verifyRegions() {
  if (failed(verifyHasLayouts(*this)))
    return failure();
  if (getValues().empty() || getOutputs().size() != getValues().size())
    return emitOpError("needs at least one value, and has a result for each");
  if (failed(verifyAlike(*this, getValues())) || failed(verifyAlike(*this, getBefore())))
    return failure();
  auto shape = cast<RankedTensorType>(getValues().front().getType()).getShape(),
       ofBefore = cast<RankedTensorType>(getBefore().front().getType()).getShape();
  bool fits = getAxis() < shape.size() && shape.size() == ofBefore.size() &&
              llvm::all_of(
                  llvm::zip(shape, ofBefore),
                  [](auto pair) { return std::get<1>(pair) == 1 || std::get<0>(pair) == std::get<1>(pair); });
  if (!fits)
    return emitOpError() << "cannot put " << getBefore().front().getType() << " before "
                         << getValues().front().getType() << " along " << getAxis();
  SmallVector<Type> elements;
  for (auto [before, value, output] : llvm::zip_equal(getBefore(), getValues(), getOutputs())) {
    auto type = cast<RankedTensorType>(value.getType());
    if (output.getType() != type || getElementTypeOrSelf(before.getType()) != type.getElementType())
      return emitOpError() << "gives " << type << " of elements like those before, not " << output.getType();
    elements.push_back(type.getElementType());
  }
  return verifyBody(*this, getBody(), elements);
}
