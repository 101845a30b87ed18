// Emits reductions within a warp. Padding is first replaced by neutral elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Algebra.h"
#include "dialect/lower/nvvm/Emitter.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

using layout::Layout;
using tile::ReduceKind;

namespace {
bool isNarrowFloat(Type type) { return isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32; }

/// Returns the neutral element of a reduction.
TypedAttr neutralOf(ReduceKind kind, Type type, Builder &builder) {
  auto floatType = dyn_cast<FloatType>(type);
  auto number = [&](double value) -> TypedAttr {
    return floatType ? TypedAttr(builder.getFloatAttr(type, value))
                     : TypedAttr(builder.getIntegerAttr(type, int64_t(value)));
  };
  auto integer = [&](const APInt &value) -> TypedAttr { return builder.getIntegerAttr(type, value); };
  unsigned width = type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
  switch (kind) {
  case ReduceKind::Sum: // -0: adding it changes no zero's sign.
    return floatType
               ? TypedAttr(FloatAttr::get(type, APFloat::getZero(floatType.getFloatSemantics(), /*Negative=*/true)))
               : number(0);
  case ReduceKind::Prod:
    return number(1);
  case ReduceKind::Max:
    return floatType
               ? TypedAttr(FloatAttr::get(type, APFloat::getInf(floatType.getFloatSemantics(), /*Negative=*/true)))
               : integer(APInt::getSignedMinValue(width));
  case ReduceKind::Min:
    return floatType ? TypedAttr(FloatAttr::get(type, APFloat::getInf(floatType.getFloatSemantics())))
                     : integer(APInt::getSignedMaxValue(width));
  case ReduceKind::UMax:
  case ReduceKind::Or:
    return integer(APInt::getZero(width));
  case ReduceKind::UMin:
  case ReduceKind::And:
    return integer(APInt::getAllOnes(width));
  }
  llvm_unreachable("a kind of reduction");
}

Value combineTwo(ImplicitLocOpBuilder &builder, ReduceKind kind, Value left, Value right) {
  bool isFloat = isa<FloatType>(left.getType());
  switch (kind) {
  case ReduceKind::Sum: // In any order, so that a product may be fused into an addition.
    return isFloat ? arith::AddFOp::create(builder, left, right, arith::FastMathFlags::contract).getResult()
                   : arith::AddIOp::create(builder, left, right).getResult();
  case ReduceKind::Prod:
    return isFloat ? arith::MulFOp::create(builder, left, right).getResult()
                   : arith::MulIOp::create(builder, left, right).getResult();
  case ReduceKind::Max:
    return isFloat ? arith::MaximumFOp::create(builder, left, right).getResult()
                   : arith::MaxSIOp::create(builder, left, right).getResult();
  case ReduceKind::Min:
    return isFloat ? arith::MinimumFOp::create(builder, left, right).getResult()
                   : arith::MinSIOp::create(builder, left, right).getResult();
  case ReduceKind::UMax:
    return arith::MaxUIOp::create(builder, left, right);
  case ReduceKind::UMin:
    return arith::MinUIOp::create(builder, left, right);
  case ReduceKind::And:
    return arith::AndIOp::create(builder, left, right);
  case ReduceKind::Or:
    return arith::OrIOp::create(builder, left, right);
  }
  llvm_unreachable("a kind of reduction");
}
} // namespace

LogicalResult Emitter::reduceInWarp(Operation *op, ValueRange inputs, ValueRange neutral, unsigned axis,
                                    Combine combine) {
  const Layout &from = kgpu::layoutOf(inputs.front()), &to = kgpu::layoutOf(op->getResult(0));
  ArrayRef<int64_t> shape = cast<RankedTensorType>(inputs.front().getType()).getShape();
  nvvm::Registers held;
  for (auto [input, none] : llvm::zip(inputs, neutral)) {
    TileRegisters values(registersOf(input));
    if (int64_t extent = shape[axis]; from.shape()[axis] > extent)
      for (auto [reg, value] : llvm::enumerate(values)) {
        Value coordinate = place.coordinate(builder, from, reg, axis);
        Value inside =
            arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, coordinate, constantOf(builder, extent));
        value = arith::SelectOp::create(builder, inside, value, none);
      }
    held.push_back(std::move(values));
  }
  llvm::Expected<Layout> inWarp = kgpu::shareOfWarp(from, axis);
  if (!inWarp)
    return op->emitOpError() << "cannot be reduced: " << llvm::toString(inWarp.takeError());
  nvvm::Registers reduced = reduceAlong(builder, *inWarp, axis, held, combine);
  for (auto [result, values] : llvm::zip(op->getResults(), reduced)) {
    if (values.size() != to.registers())
      return op->emitOpError() << "gives " << values.size() << " registers, its layout has " << to.registers();
    define(result, std::move(values));
  }
  return success();
}

LogicalResult Emitter::emitReduce(Operation *op, ReduceKind kind, Value value, int64_t axis) {
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  // Sums and products of narrow floats are computed in f32 and rounded once at the end.
  bool widens = isNarrowFloat(element) && (kind == ReduceKind::Sum || kind == ReduceKind::Prod);
  TileRegisters original(registersOf(value));
  Type type = widens ? builder.getF32Type() : element;
  if (widens)
    for (Value &reg : registers.find(value)->second)
      reg = arith::ExtFOp::create(builder, type, reg);
  Value neutral = arith::ConstantOp::create(builder, neutralOf(kind, type, builder));
  LogicalResult done = reduceInWarp(op, value, neutral, axis, [&](ValueRange left, ValueRange right) {
    return SmallVector<Value>{combineTwo(builder, kind, left.front(), right.front())};
  });
  if (!widens || failed(done))
    return done;
  define(value, std::move(original));
  for (Value &reg : registers.find(op->getResult(0))->second)
    reg = arith::TruncFOp::create(builder, element, reg);
  return success();
}

FailureOr<SmallVector<Value>> Emitter::emitCombination(Block &body, ValueRange left, ValueRange right) {
  size_t count = left.size();
  for (auto [index, argument] : llvm::enumerate(body.getArguments()))
    define(argument, {index < count ? left[index] : right[index - count]});
  if (failed(emitBlock(body)))
    return failure();
  SmallVector<Value> results;
  for (Value value : body.getTerminator()->getOperands())
    results.push_back(scalar(value));
  return results;
}

LogicalResult Emitter::emitCombine(Operation *op, ValueRange inputs, ValueRange inits, int64_t axis) {
  SmallVector<Value> neutral;
  for (Value init : inits)
    neutral.push_back(scalar(init));
  bool inside = true;
  LogicalResult done = reduceInWarp(op, inputs, neutral, axis, [&](ValueRange left, ValueRange right) {
    FailureOr<SmallVector<Value>> combined = emitCombination(op->getRegion(0).front(), left, right);
    inside &= succeeded(combined);
    return inside ? *combined : SmallVector<Value>(left);
  });
  return success(inside && succeeded(done));
}

} // namespace kpkg::lower::nvvm
