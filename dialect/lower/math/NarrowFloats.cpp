// Converts between f32 or f64 and 8- and 16-bit floats: F16C and Neon for f16, integer arithmetic for the rest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/math/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/bit.h"

using namespace mlir;

namespace kpkg::lower {

bool isFloat8(Type element) { return isa<Float8E4M3FNType, Float8E5M2Type>(element); }

bool isNarrowFloat(Type element) { return element.isF16() || element.isBF16() || isFloat8(element); }

namespace {
/// Builds integer and float ops on scalars or vectors of one shape.
struct Bits {
  OpBuilder &b;
  Location loc;
  Type shaped; // The type whose shape all values have.

  Type as(Type element) const {
    auto vector = dyn_cast<VectorType>(shaped);
    return vector ? VectorType::get(vector.getShape(), element) : element;
  }
  Type integer(unsigned width) const { return as(b.getIntegerType(width)); }
  Value constant(Type type, TypedAttr attribute) const {
    if (auto vector = dyn_cast<VectorType>(type))
      return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(vector, Attribute(attribute)));
    return arith::ConstantOp::create(b, loc, attribute);
  }
  Value number(uint64_t value, unsigned width = 32) const {
    return constant(integer(width), b.getIntegerAttr(b.getIntegerType(width), APInt(width, value)));
  }
  Value real(float value) const { return constant(as(b.getF32Type()), b.getF32FloatAttr(value)); }
  Value bitcast(Value v, Type element) const { return arith::BitcastOp::create(b, loc, as(element), v); }
  Value bits32(Value v) const { return bitcast(v, b.getI32Type()); }
  Value f32(Value v) const { return bitcast(v, b.getF32Type()); }
  Value widen(Value v, unsigned width) const { return arith::ExtUIOp::create(b, loc, integer(width), v); }
  Value narrow(Value v, unsigned width) const { return arith::TruncIOp::create(b, loc, integer(width), v); }
  Value shl(Value v, unsigned n) const { return arith::ShLIOp::create(b, loc, v, number(n, width(v))); }
  Value shr(Value v, unsigned n) const { return arith::ShRUIOp::create(b, loc, v, number(n, width(v))); }
  Value plus(Value x, Value y) const { return arith::AddIOp::create(b, loc, x, y); }
  Value mask(Value v, uint32_t m) const { return arith::AndIOp::create(b, loc, v, number(m, width(v))); }
  Value orBits(Value x, Value y) const { return arith::OrIOp::create(b, loc, x, y); }
  Value below(Value x, uint32_t y) const {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, x, number(y, width(x)));
  }
  Value pick(Value c, Value x, Value y) const { return arith::SelectOp::create(b, loc, c, x, y); }
  Value isNaN(Value v) const { return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, v, v); }
  static unsigned width(Value v) { return getElementTypeOrSelf(v).getIntOrFloatBitWidth(); }
};
} // namespace

Value extendToF32(OpBuilder &builder, Location loc, Value bits, Type element) {
  Bits k{builder, loc, bits.getType()};
  if (element.isF16())
    return arith::ExtFOp::create(builder, loc, k.as(builder.getF32Type()), k.bitcast(bits, element));
  if (element.isBF16())
    return k.f32(k.shl(k.widen(bits, 32), 16));
  if (isa<Float8E5M2Type>(element)) { // The upper half of an f16.
    Value half = k.bitcast(k.shl(k.widen(bits, 16), 8), builder.getF16Type());
    return arith::ExtFOp::create(builder, loc, k.as(builder.getF32Type()), half);
  }
  assert(isa<Float8E4M3FNType>(element) && "a narrow float without a conversion");
  // Moves exponent and mantissa into an f32 whose exponent is too small by 120. The multiplication that
  // corrects the exponent also normalises subnormals.
  Value wide = k.widen(bits, 32);
  Value magnitude = k.mask(wide, 0x7f), sign = k.shl(k.mask(wide, 0x80), 24);
  Value scaled = arith::MulFOp::create(builder, loc, k.f32(k.shl(magnitude, 20)), k.real(0x1p120f));
  Value nan = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, magnitude, k.number(0x7f));
  return k.f32(k.orBits(k.pick(nan, k.number(0x7fc00000), k.bits32(scaled)), sign));
}

/// Rounds f64 to f32 by rounding to odd. A second rounding to at most 22 bits of mantissa then equals a single
/// rounding.
static Value roundToOdd(const Bits &k, Value value) {
  OpBuilder &b = k.b;
  Value near = arith::TruncFOp::create(b, k.loc, k.as(b.getF32Type()), value);
  Value back = arith::ExtFOp::create(b, k.loc, k.as(b.getF64Type()), near);
  // Magnitudes compare as integers; the sign bit of both is the same.
  Value exactBits = k.bitcast(value, b.getI64Type()), backBits = k.bitcast(back, b.getI64Type());
  Value above = arith::CmpIOp::create(b, k.loc, arith::CmpIPredicate::ugt, backBits, exactBits);
  Value inexact = arith::CmpIOp::create(b, k.loc, arith::CmpIPredicate::ne, backBits, exactBits);
  Value bits = k.bits32(near);
  Value towardsZero = arith::SubIOp::create(b, k.loc, bits, k.widen(above, 32));
  Value odd = k.orBits(towardsZero, k.widen(inexact, 32));
  return k.f32(k.pick(k.isNaN(value), bits, odd));
}

static Value roundToF8(const Bits &k, Value value, bool e5m2) {
  // The exponent bias is 7 with 3 bits of mantissa, or 15 with 2 bits.
  unsigned drop = e5m2 ? 21 : 20, bias = e5m2 ? 15 : 7;
  uint32_t overflow = e5m2 ? 143u << 23 : 1087u << 20; // 65536 and 480: NaN or infinity from here on.
  uint32_t smallest = (127 - bias + 1) << 23;          // The smallest normal number.
  uint32_t magic = (127 - bias + drop + 1) << 23;      // Adding it rounds to a multiple of the smallest subnormal.
  Value all = k.bits32(value);
  Value magnitude = k.mask(all, 0x7fffffff), sign = k.shr(k.mask(all, 0x80000000), 24);
  Value magicBits = k.number(magic);
  Value sum = arith::AddFOp::create(k.b, k.loc, k.f32(magnitude), k.f32(magicBits));
  Value subnormal = arith::SubIOp::create(k.b, k.loc, k.bits32(sum), magicBits);
  Value rounded = k.plus(magnitude, k.number(((bias - 127u) << 23) + (1u << (drop - 1)) - 1));
  rounded = k.shr(k.plus(rounded, k.mask(k.shr(magnitude, drop), 1)), drop);
  Value finite = k.pick(k.below(magnitude, smallest), subnormal, rounded);
  Value special = k.number(0x7f);
  if (e5m2)
    special = k.pick(k.below(magnitude, 0x7f800001), k.number(0x7c), special);
  Value result = k.pick(k.below(magnitude, overflow), finite, special);
  return k.narrow(k.orBits(result, sign), 8);
}

Value roundToNarrow(OpBuilder &builder, Location loc, Value value, Type element) {
  Bits k{builder, loc, value.getType()};
  if (getElementTypeOrSelf(value).isF64())
    value = roundToOdd(k, value);
  if (element.isF16())
    return k.bitcast(arith::TruncFOp::create(builder, loc, k.as(element), value), builder.getIntegerType(16));
  if (isFloat8(element))
    return roundToF8(k, value, isa<Float8E5M2Type>(element));
  assert(element.isBF16() && "a narrow float without a conversion");
  Value bits = k.bits32(value);
  Value rounded = k.plus(k.plus(bits, k.number(0x7fff)), k.mask(k.shr(bits, 16), 1));
  Value quiet = k.orBits(bits, k.number(0x00400000));
  return k.narrow(k.shr(k.pick(k.isNaN(value), quiet, rounded), 16), 16);
}

} // namespace kpkg::lower
