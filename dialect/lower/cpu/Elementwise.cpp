// Emits elementwise ops on registers: narrow floats compute in f32, divisions never trap.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/lower/math/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static Type likeShape(ValueRange operands, Type element) {
  for (Value operand : operands)
    if (auto vector = dyn_cast<VectorType>(operand.getType()))
      return VectorType::get(vector.getShape(), element);
  return element;
}

Value KernelEmitter::emitConstant(Attribute attribute, Type element) {
  if (auto real = dyn_cast<FloatAttr>(attribute); real && isNarrowFloat(element))
    return constant(builder.getIntegerAttr(registerType(element), real.getValue().bitcastToAPInt()));
  return constant(cast<TypedAttr>(attribute));
}

Value KernelEmitter::emitElementwise(Operation *op, SmallVector<Value> operands) {
  // If any operand is a vector, scalar operands are broadcast. The condition of a select may stay a scalar.
  int64_t count = 0;
  for (Value operand : operands)
    if (auto vector = dyn_cast<VectorType>(operand.getType()))
      count = vector.getDimSize(0);
  if (count)
    for (auto [i, operand] : llvm::enumerate(operands))
      if (!(isa<arith::SelectOp>(op) && i == 0))
        operand = splatTo(operand, count);
  return hoisted(operands, [&] { return settle(emitHere(op, operands)); });
}

Value KernelEmitter::emitHere(Operation *op, SmallVector<Value> operands) {
  Type result = getElementTypeOrSelf(op->getResult(0).getType());
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp,
          arith::BitcastOp>(op))
    return emitConversion(op, operands[0], result);
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp, arith::FloorDivSIOp, arith::CeilDivSIOp,
          arith::CeilDivUIOp>(op))
    return emitDivision(op, operands);
  bool narrowInput = false;
  if (!isa<arith::SelectOp>(op))
    for (auto [operand, original] : llvm::zip(operands, op->getOperands())) {
      Type element = getElementTypeOrSelf(original.getType());
      if (!isNarrowFloat(element))
        continue;
      narrowInput = true;
      operand = extendToF32(builder, loc, operand, element);
    }
  bool narrowResult = narrowInput && isNarrowFloat(result);
  Type element = narrowResult ? Type(builder.getF32Type()) : registerType(result);
  OperationState state(loc, op->getName());
  state.addOperands(operands);
  state.addTypes(likeShape(operands, element));
  state.addAttributes(op->getAttrDictionary().getValue());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  Operation *made = builder.create(state);
  SmallVector<Value> folded;
  Value value = made->getResult(0);
  if (succeeded(builder.tryFold(made, folded)) && !folded.empty()) {
    made->erase();
    value = folded[0];
  }
  return narrowResult ? roundToNarrow(builder, loc, value, result) : value;
}

Value KernelEmitter::emitConversion(Operation *op, Value operand, Type result) {
  Type from = getElementTypeOrSelf(op->getOperand(0).getType());
  if (isa<arith::BitcastOp>(op)) {
    Type type = likeShape(operand, registerType(result));
    return operand.getType() == type ? operand : builder.createOrFold<arith::BitcastOp>(loc, type, operand);
  }
  if (isNarrowFloat(from)) {
    operand = extendToF32(builder, loc, operand, from);
    from = builder.getF32Type();
  }
  if (!isa<FloatType>(result)) {
    Type type = likeShape(operand, result);
    return isa<arith::FPToSIOp>(op) ? builder.createOrFold<arith::FPToSIOp>(loc, type, operand)
                                    : builder.createOrFold<arith::FPToUIOp>(loc, type, operand);
  }
  Type wide = isNarrowFloat(result) ? (from.isF64() ? from : Type(builder.getF32Type())) : result;
  Type type = likeShape(operand, wide);
  if (isa<arith::SIToFPOp>(op))
    operand = builder.createOrFold<arith::SIToFPOp>(loc, type, operand);
  else if (isa<arith::UIToFPOp>(op))
    operand = builder.createOrFold<arith::UIToFPOp>(loc, type, operand);
  else if (from != wide && from.getIntOrFloatBitWidth() < wide.getIntOrFloatBitWidth())
    operand = builder.createOrFold<arith::ExtFOp>(loc, type, operand);
  else if (from != wide)
    operand = builder.createOrFold<arith::TruncFOp>(loc, type, operand);
  return isNarrowFloat(result) ? roundToNarrow(builder, loc, operand, result) : operand;
}

/// Emits an integer division that never traps, where the hardware would. Division by 0 returns the result of a division
/// by 1, and the smallest number / -1 wraps. Correct programs do this: lanes beyond a view's end divide by the fill.
Value KernelEmitter::emitDivision(Operation *op, ValueRange operands) {
  Type type = likeShape(operands, getElementTypeOrSelf(op->getResult(0).getType()));
  Value a = operands[0], b = operands[1];
  auto number = [&](APInt value) -> Value {
    Type element = getElementTypeOrSelf(type);
    TypedAttr one = element.isIndex() ? builder.getIntegerAttr(element, value.getSExtValue())
                                      : builder.getIntegerAttr(element, value);
    if (auto vector = dyn_cast<VectorType>(type))
      return constant(DenseElementsAttr::get(vector, Attribute(one)));
    return constant(one);
  };
  unsigned width = getElementTypeOrSelf(type).isIndex() ? 64 : getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  Value one = number(APInt(width, 1));
  using P = arith::CmpIPredicate;
  Value bad = builder.createOrFold<arith::CmpIOp>(loc, P::eq, b, number(APInt(width, 0)));
  if (!isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp>(op)) {
    Value minus = builder.createOrFold<arith::CmpIOp>(loc, P::eq, b, number(APInt::getAllOnes(width)));
    Value smallest = builder.createOrFold<arith::CmpIOp>(loc, P::eq, a, number(APInt::getSignedMinValue(width)));
    bad = builder.createOrFold<arith::OrIOp>(loc, bad, builder.createOrFold<arith::AndIOp>(loc, minus, smallest));
  }
  b = builder.createOrFold<arith::SelectOp>(loc, bad, one, b);
  OperationState state(loc, op->getName());
  state.addOperands({a, b});
  state.addTypes(type);
  Operation *made = builder.create(state);
  SmallVector<Value> folded;
  Value value = made->getResult(0);
  if (succeeded(builder.tryFold(made, folded)) && !folded.empty()) {
    made->erase();
    value = folded[0];
  }
  return value;
}

} // namespace kpkg::lower::cpu
