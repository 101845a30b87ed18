// Emits log, log2 and powf: a series on the significand in [sqrt(1/2), sqrt(2)), plus the exponent.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The forms f - (f^2/2 - ...) and s = f / (2 + f) are fdlibm's (e_log.c, e_log2.c). The double-double logarithm for
// powf uses the exact sums and products of Dekker and Knuth, with FMA.
#include "dialect/lower/math/VectorMathCoefficients.h"
#include "dialect/lower/math/VectorMathFunctions.h"
#include <limits>

using namespace mlir;

namespace kpkg::lower {
namespace {

/// x = 2^exponent * (1 + fraction) with 1 + fraction in [sqrt(1/2), sqrt(2)), for positive finite x.
struct SplitNumber {
  Value exponent, fraction;
};

} // namespace

static SplitNumber splitNumber(FloatCode &f, Value x) {
  bool wide = f.isDouble();
  int64_t width = wide ? 52 : 23;
  double toNormal = wide ? 0x1p54 : 0x1p25;
  Value denormal = f.less(x, f.number(wide ? 0x1p-1022 : 0x1p-126));
  Value normal = f.select(denormal, f.mul(x, f.number(toNormal)), x);
  uint64_t one = wide ? 0x3ff0000000000000 : 0x3f800000, rootHalf = wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  Value shifted = f.addInteger(f.bits(normal), f.integer(one - rootHalf));
  Value significand = f.addInteger(f.andInteger(shifted, f.integer((uint64_t(1) << width) - 1)), f.integer(rootHalf));
  // Converts an integer below 2^width by reinterpreting it as the low bits of 2^width, because AVX2 cannot convert
  // 64-bit integers.
  double integral = wide ? 0x1p52 : 0x1p23;
  Value biased =
      f.fromBits(f.orInteger(f.shiftRight(shifted, width), f.integer(wide ? 0x4330000000000000 : 0x4b000000)));
  double bias = integral + (wide ? 1023 : 127);
  Value offset = f.select(denormal, f.number(bias + (wide ? 54 : 25)), f.number(bias));
  return {f.sub(biased, offset), f.sub(f.fromBits(significand), f.number(1))};
}

/// Returns log(1 + t) - t.
static Value logTail(FloatCode &f, Value t) {
  using namespace coefficients;
  Value halfSquare = f.mul(f.mul(t, t), f.number(0.5));
  if (!f.isDouble()) {
    Value cube = f.mul(f.mul(t, t), t);
    return f.fma(cube, f.polynomial(logF32, t), f.negate(halfSquare));
  }
  Value s = f.div(t, f.add(t, f.number(2)));
  Value square = f.mul(s, s);
  Value rest = f.mul(square, f.polynomial(logF64, square));
  return f.fma(s, f.add(halfSquare, rest), f.negate(halfSquare));
}

/// Selects the results outside the series: log(0), log(inf), and NaN for NaN and negative numbers.
static Value logSpecial(FloatCode &f, Value x, Value result) {
  double infinity = std::numeric_limits<double>::infinity();
  result = f.select(f.less(x, f.number(infinity)), result, x);
  result = f.select(f.equal(x, f.number(0)), f.number(-infinity), result);
  return f.select(f.less(x, f.number(0)), f.number(std::numeric_limits<double>::quiet_NaN()), result);
}

Value emitLog(FloatCode &f, Value x) {
  using namespace coefficients;
  ArrayRef<double> ln2 = f.isDouble() ? ArrayRef(ln2F64) : ArrayRef(ln2F32);
  auto [exponent, t] = splitNumber(f, x);
  Value low = f.fma(exponent, f.number(ln2[1]), logTail(f, t));
  return logSpecial(f, x, f.fma(exponent, f.number(ln2[0]), f.add(t, low)));
}

Value emitLog2(FloatCode &f, Value x) {
  using namespace coefficients;
  ArrayRef<double> log2e = f.isDouble() ? ArrayRef(log2eF64) : ArrayRef(log2eF32);
  auto [exponent, t] = splitNumber(f, x);
  Value tail = logTail(f, t);
  // log2(1 + t) = (t + tail) * log2(e), with an exact product of the leading parts.
  Value high = f.mul(t, f.number(log2e[0]));
  Value low = f.fma(t, f.number(log2e[0]), f.negate(high));
  low = f.fma(tail, f.number(log2e[0]), f.fma(t, f.number(log2e[1]), low));
  // exponent + high may lose bits of high when both have a similar size, so the lost part is carried along.
  Value sum = f.add(exponent, high);
  Value lost = f.add(f.sub(exponent, sum), high);
  return logSpecial(f, x, f.add(sum, f.add(lost, low)));
}

namespace {

/// The unevaluated sum of two numbers. `low` is below half a unit in the last place of `high`.
struct Pair {
  Value high, low;
};

} // namespace

static Pair fastTwoSum(FloatCode &f, Value x, Value y) { // Requires |x| >= |y|.
  Value sum = f.add(x, y);
  return {sum, f.sub(y, f.sub(sum, x))};
}

static Pair multiply(FloatCode &f, Pair x, Pair y) {
  Value high = f.mul(x.high, y.high);
  Value low = f.fma(x.high, y.high, f.negate(high));
  low = f.fma(x.high, y.low, f.fma(x.low, y.high, low));
  return fastTwoSum(f, high, low);
}

/// Returns log2(x) with a relative error of about 2^-68, for positive finite x, in f64.
static Pair log2Pair(FloatCode &f, Value x) {
  using namespace coefficients;
  auto [exponent, t] = splitNumber(f, x);
  Value denominator = f.add(t, f.number(2));
  Value lost = f.sub(t, f.sub(denominator, f.number(2)));
  Value s = f.div(t, denominator);
  Value residue = f.fma(f.negate(s), denominator, t);
  residue = f.fma(f.negate(s), lost, residue);
  Pair ratio{s, f.div(residue, denominator)};
  // log(1 + t) = 2 s + 2/3 s^3 + s^5 * (...), with the first two terms as pairs.
  Pair square = multiply(f, ratio, ratio);
  Pair cube = multiply(f, square, ratio);
  Pair second = multiply(f, cube, {f.number(twoThirdsF64[0]), f.number(twoThirdsF64[1])});
  Value fifth = f.mul(cube.high, square.high);
  Value rest = f.polynomial(logFifthF64, square.high);
  Value correction = f.mul(fifth, rest);
  Pair sum = fastTwoSum(f, f.add(ratio.high, ratio.high), second.high);
  Value low = f.add(f.add(sum.low, f.add(ratio.low, ratio.low)), f.add(second.low, correction));
  sum = fastTwoSum(f, sum.high, low);
  Pair scaled = multiply(f, sum, {f.number(log2eF64[0]), f.number(log2eF64[1])});
  Pair result = fastTwoSum(f, exponent, scaled.high);
  // For exponent 0 the operands are swapped, and the sum is exact.
  Value zero = f.equal(exponent, f.number(0));
  return fastTwoSum(f, f.select(zero, scaled.high, result.high),
                    f.add(f.select(zero, f.number(0), result.low), scaled.low));
}

/// Returns |x|^y for finite nonzero x and finite y, in f64.
static Value powerOfMagnitude(FloatCode &f, Value magnitude, Value y) {
  Pair log = log2Pair(f, magnitude);
  Value high = f.mul(y, log.high);
  Value low = f.fma(y, log.low, f.fma(y, log.high, f.negate(high)));
  // When the product overflows, its error term is NaN.
  low = f.select(f.less(f.abs(high), f.number(1100)), low, f.number(0));
  return emitExp2OfSum(f, high, low);
}

Value emitPow(FloatCode &narrow, Value x, Value y) {
  Type original = narrow.type();
  OpBuilder &b = narrow.builder();
  Location loc = x.getLoc();
  FloatCode f = narrow.as(narrow.typeLike(b.getF64Type()));
  if (!narrow.isDouble()) {
    x = arith::ExtFOp::create(b, loc, f.type(), x);
    y = arith::ExtFOp::create(b, loc, f.type(), y);
  }
  Value zero = f.number(0), one = f.number(1), infinity = f.number(std::numeric_limits<double>::infinity());
  Value nan = f.number(std::numeric_limits<double>::quiet_NaN());
  Value magnitude = f.abs(x);
  Value result = powerOfMagnitude(f, magnitude, y);

  Value rises = f.greater(y, zero);
  result = f.select(f.equal(magnitude, zero), f.select(rises, zero, infinity), result);
  result = f.select(f.equal(magnitude, infinity), f.select(rises, infinity, zero), result);
  Value atInfinity =
      f.select(f.greater(magnitude, one), f.select(rises, infinity, zero), f.select(rises, zero, infinity));
  atInfinity = f.select(f.equal(magnitude, one), one, atInfinity);
  result = f.select(f.equal(f.abs(y), infinity), atInfinity, result);

  Value integral = f.equal(f.floor(y), y);
  Value half = f.mul(y, f.number(0.5));
  Value odd = f.both(integral, f.compare(arith::CmpFPredicate::ONE, f.floor(half), half));
  result = f.select(odd, f.copySign(result, x), result);
  Value undefined =
      f.both(f.less(x, zero), f.both(f.compare(arith::CmpFPredicate::UNE, f.floor(y), y), f.less(magnitude, infinity)));
  result = f.select(undefined, nan, result);
  result = f.select(f.compare(arith::CmpFPredicate::UNO, x, y), nan, result);
  result = f.select(f.either(f.equal(y, zero), f.equal(x, one)), one, result);
  if (narrow.isDouble())
    return result;
  return arith::TruncFOp::create(b, loc, original, result);
}

} // namespace kpkg::lower
