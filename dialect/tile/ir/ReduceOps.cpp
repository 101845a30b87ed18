// Implements verifiers and builders of ops that combine elements along an axis, and of the matrix product.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/ir/TileDialect.h"

using namespace mlir;
using namespace kpkg::tile;

static RankedTensorType tileOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// Returns the type with extent 1 on `axis`.
static RankedTensorType reducedType(RankedTensorType type, int64_t axis, Type elementType = {}) {
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = 1;
  return RankedTensorType::get(shape, elementType ? elementType : type.getElementType());
}

static LogicalResult verifyReduced(Operation *op, RankedTensorType value, int64_t axis, Type result,
                                   Type elementType = {}) {
  if (axis >= value.getRank())
    return op->emitOpError() << "axis " << axis << " is not a dimension of " << value;
  // Operand and result have different layouts, which kgpu-verify checks.
  RankedTensorType expected = reducedType(value, axis, elementType);
  auto given = cast<RankedTensorType>(result);
  if (given.getShape() != expected.getShape() || given.getElementType() != expected.getElementType())
    return op->emitOpError() << "gives " << expected << ", not " << result;
  return success();
}

void ReduceOp::build(OpBuilder &builder, OperationState &state, ReduceKind kind, Value value, int64_t axis) {
  build(builder, state, reducedType(tileOf(value), axis), kind, value, axis);
}

LogicalResult ReduceOp::verify() {
  Type element = tileOf(getValue()).getElementType();
  bool isFloat = isa<FloatType>(element), isBool = element.isInteger(1);
  bool fits = false;
  switch (getKind()) {
  case ReduceKind::Sum:
  case ReduceKind::Prod:
  case ReduceKind::Max:
  case ReduceKind::Min:
    fits = !isBool;
    break;
  case ReduceKind::UMax:
  case ReduceKind::UMin:
    fits = !isFloat && !isBool;
    break;
  case ReduceKind::And:
  case ReduceKind::Or:
    fits = !isFloat;
    break;
  }
  if (!fits)
    return emitOpError() << "`" << stringifyReduceKind(getKind()) << "` is not defined for " << element;
  return verifyReduced(*this, tileOf(getValue()), getAxis(), getType());
}

void ArgReduceOp::build(OpBuilder &builder, OperationState &state, ArgReduceKind kind, Value value, int64_t axis) {
  build(builder, state, reducedType(tileOf(value), axis, builder.getIndexType()), kind, value, axis);
}

LogicalResult ArgReduceOp::verify() {
  Type element = tileOf(getValue()).getElementType();
  bool isUnsigned = getKind() == ArgReduceKind::UMax || getKind() == ArgReduceKind::UMin;
  if (element.isInteger(1) || (isUnsigned && isa<FloatType>(element)))
    return emitOpError() << "`" << stringifyArgReduceKind(getKind()) << "` is not defined for " << element;
  return verifyReduced(*this, tileOf(getValue()), getAxis(), getType(), IndexType::get(getContext()));
}

/// Verifies a combine or a scan: inputs of one shape, and a body (lhs.., rhs..) -> one value per input.
static LogicalResult verifyFunction(Operation *op, ValueRange inputs, int64_t axis, Block &body) {
  if (inputs.empty())
    return op->emitOpError("needs at least one input");
  RankedTensorType first = tileOf(inputs.front());
  if (axis >= first.getRank())
    return op->emitOpError() << "axis " << axis << " is not a dimension of " << first;
  SmallVector<Type> elements;
  for (Value input : inputs) {
    if (tileOf(input).getShape() != first.getShape())
      return op->emitOpError() << "inputs have one shape, but " << input.getType() << " differs from " << first;
    elements.push_back(tileOf(input).getElementType());
  }
  SmallVector<Type> arguments(elements);
  llvm::append_range(arguments, elements);
  if (body.getArgumentTypes() != TypeRange(arguments))
    return op->emitOpError() << "body takes (" << arguments << ")";
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  if (!yield || TypeRange(yield.getValues().getTypes()) != TypeRange(elements))
    return op->emitOpError() << "body yields (" << elements << ")";
  for (Operation &inner : body)
    if (!isMemoryEffectFree(&inner))
      return inner.emitOpError() << "has effects, which the body of `" << op->getName() << "` cannot have";
  return success();
}

/// Adds a body whose arguments are the element types of `inputs`, twice.
static void addFunctionBody(OpBuilder &builder, OperationState &state, ValueRange inputs) {
  OpBuilder::InsertionGuard guard(builder);
  Block *body = builder.createBlock(state.addRegion());
  for (int side = 0; side < 2; ++side)
    for (Value input : inputs)
      body->addArgument(tileOf(input).getElementType(), state.location);
}

void CombineOp::build(OpBuilder &builder, OperationState &state, ValueRange inputs, ValueRange inits, int64_t axis) {
  state.addOperands(inputs);
  state.addOperands(inits);
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
  for (Value input : inputs)
    state.addTypes(reducedType(tileOf(input), axis));
  addFunctionBody(builder, state, inputs);
}

LogicalResult CombineOp::verifyRegions() {
  if (failed(verifyFunction(*this, getInputs(), getAxis(), getBody().front())))
    return failure();
  if (getOutputs().size() != getInputs().size())
    return emitOpError() << "has " << getInputs().size() << " inputs, so it gives as many results";
  for (auto [input, init, output] : llvm::zip_equal(getInputs(), getInits(), getOutputs())) {
    if (init.getType() != tileOf(input).getElementType())
      return emitOpError() << "init " << init.getType() << " is not an element of " << input.getType();
    if (failed(verifyReduced(*this, tileOf(input), getAxis(), output.getType())))
      return failure();
  }
  return success();
}

void ScanOp::build(OpBuilder &builder, OperationState &state, ValueRange inputs, int64_t axis) {
  state.addOperands(inputs);
  state.getOrAddProperties<Properties>().axis = builder.getI64IntegerAttr(axis);
  state.addTypes(inputs.getTypes());
  addFunctionBody(builder, state, inputs);
}

LogicalResult ScanOp::verifyRegions() {
  if (failed(verifyFunction(*this, getInputs(), getAxis(), getBody().front())))
    return failure();
  if (TypeRange(getInputs().getTypes()) != TypeRange(getOutputs().getTypes()))
    return emitOpError("gives one result per input, of its type");
  return success();
}

LogicalResult DotOp::verify() {
  RankedTensorType lhs = tileOf(getLhs()), rhs = tileOf(getRhs()), accumulator = tileOf(getAccumulator());
  Type element = lhs.getElementType();
  if (rhs.getElementType() != element)
    return emitOpError() << "operands have one element type, not " << element << " and " << rhs.getElementType();
  Builder builder(getContext());
  Type wide = element.isF64()           ? builder.getF64Type()
              : isa<FloatType>(element) ? Type(builder.getF32Type())
              : element.isInteger(8)    ? Type(builder.getI32Type())
                                        : Type();
  if (!wide)
    return emitOpError() << "is not defined for operands of " << element;
  if (accumulator.getElementType() != wide)
    return emitOpError() << "of " << element << " accumulates in " << wide << ", not " << accumulator.getElementType();
  if (getPrecision() == DotPrecision::TF32 && !element.isF32())
    return emitOpError() << "precision tf32 is for f32 operands, not " << element;
  int64_t rank = lhs.getRank();
  if ((rank != 2 && rank != 3) || rhs.getRank() != rank || accumulator.getRank() != rank)
    return emitOpError("takes three tiles of rank 2, or of rank 3 with a batch");
  SmallVector<int64_t> left(lhs.getShape()), right(rhs.getShape()), out(accumulator.getShape());
  if (Value positions = getPositions()) {
    if (rank != 2 || !isa<FloatType>(element))
      return emitOpError("with positions is for floats of rank 2");
    left[1] *= 2;
    RankedTensorType type = tileOf(positions);
    if (!type.getElementType().isInteger(16) || left[1] % 16 != 0 ||
        type.getShape() != ArrayRef<int64_t>{left[0], left[1] / 16})
      return emitOpError() << "takes positions i16 of " << left[0] << " x " << left[1] << " / 16, not " << type;
  }
  bool agrees =
      left[rank - 1] == right[rank - 2] && left[rank - 2] == out[rank - 2] && right[rank - 1] == out[rank - 1];
  if (rank == 3)
    agrees = agrees && left[0] == right[0] && left[0] == out[0];
  if (!agrees)
    return emitOpError() << "shapes do not agree: " << lhs << " @ " << rhs << " + " << accumulator;
  return success();
}
