// Implements FloatCode with one MLIR op for each method.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/math/VectorMathCode.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kpkg::lower {

static Type withElement(Type shape, Type element) {
  auto vector = dyn_cast<VectorType>(shape);
  return vector ? VectorType::get(vector.getShape(), element) : element;
}

FloatCode::FloatCode(OpBuilder &builder, Location loc, Type type) : b(loc, builder), floatType(type) {
  wide = getElementTypeOrSelf(type).isF64();
  assert((wide || getElementTypeOrSelf(type).isF32()) && "computed in f32 or f64");
  integerType = withElement(type, b.getIntegerType(wide ? 64 : 32));
}

Type FloatCode::typeLike(Type element) const { return withElement(floatType, element); }

static Value constant(ImplicitLocOpBuilder &b, Type type, TypedAttr element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return arith::ConstantOp::create(b, DenseElementsAttr::get(vector, element));
  return arith::ConstantOp::create(b, element);
}

Value FloatCode::number(double value) {
  return constant(b, floatType, b.getFloatAttr(getElementTypeOrSelf(floatType), value));
}
Value FloatCode::add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
Value FloatCode::sub(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
Value FloatCode::mul(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
Value FloatCode::div(Value x, Value y) { return arith::DivFOp::create(b, x, y); }
Value FloatCode::fma(Value x, Value y, Value z) { return math::FmaOp::create(b, x, y, z); }
Value FloatCode::negate(Value x) { return arith::NegFOp::create(b, x); }
Value FloatCode::abs(Value x) { return math::AbsFOp::create(b, x); }
Value FloatCode::floor(Value x) { return math::FloorOp::create(b, x); }
Value FloatCode::copySign(Value magnitude, Value sign) { return math::CopySignOp::create(b, magnitude, sign); }

Value FloatCode::polynomial(ArrayRef<double> c, Value x) {
  Value result = number(c.back());
  for (double coefficient : llvm::reverse(c.drop_back()))
    result = fma(result, x, number(coefficient));
  return result;
}

Value FloatCode::compare(arith::CmpFPredicate predicate, Value x, Value y) {
  return arith::CmpFOp::create(b, predicate, x, y);
}
Value FloatCode::both(Value p, Value q) { return arith::AndIOp::create(b, p, q); }
Value FloatCode::either(Value p, Value q) { return arith::OrIOp::create(b, p, q); }
Value FloatCode::select(Value condition, Value x, Value y) { return arith::SelectOp::create(b, condition, x, y); }
Value FloatCode::atMost(Value x, double bound) { return select(greater(x, number(bound)), number(bound), x); }
Value FloatCode::atLeast(Value x, double bound) { return select(less(x, number(bound)), number(bound), x); }

Value FloatCode::bits(Value x) { return arith::BitcastOp::create(b, integerType, x); }
Value FloatCode::fromBits(Value x) { return arith::BitcastOp::create(b, floatType, x); }
Value FloatCode::integer(uint64_t value) {
  IntegerType element = cast<IntegerType>(getElementTypeOrSelf(integerType));
  return constant(b, integerType, b.getIntegerAttr(element, APInt(element.getWidth(), value, false, true)));
}
Value FloatCode::addInteger(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
Value FloatCode::subInteger(Value x, Value y) { return arith::SubIOp::create(b, x, y); }
Value FloatCode::andInteger(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
Value FloatCode::orInteger(Value x, Value y) { return arith::OrIOp::create(b, x, y); }
Value FloatCode::xorInteger(Value x, Value y) { return arith::XOrIOp::create(b, x, y); }
Value FloatCode::shiftLeft(Value x, int64_t count) { return arith::ShLIOp::create(b, x, integer(count)); }
Value FloatCode::shiftRight(Value x, int64_t count) { return arith::ShRUIOp::create(b, x, integer(count)); }
Value FloatCode::testBits(Value x, uint64_t mask) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, andInteger(x, integer(mask)), integer(0));
}

Value FloatCode::powerOfTwo(Value shifted) {
  // The offset's own significand bits are shifted out, so that only the integer reaches the exponent field.
  Value exponent = shiftLeft(bits(shifted), wide ? 52 : 23);
  return fromBits(addInteger(exponent, integer(wide ? 0x3ff0000000000000 : 0x3f800000)));
}

} // namespace kpkg::lower
