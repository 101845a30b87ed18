// Emits exp, exp2, tanh and erf: reduction to |r| <= ln(2) / 2, a polynomial, and scaling by a power of two.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rounding by adding 1.5 * 2^(p-1), and scaling in two steps to reach denormals, are standard techniques. See Cody and
// Waite, "Software Manual for the Elementary Functions", 1980, and Shibata and Petrogalli, "SLEEF", 2019. tanh through
// expm1 follows fdlibm's s_tanh.c.
#include "dialect/lower/math/VectorMathCoefficients.h"
#include "dialect/lower/math/VectorMathFunctions.h"

using namespace mlir;

namespace kpkg::lower {

/// exp(x) = 2^n * (1 + tail), with the integer n in `shifted`.
struct ReducedExp {
  Value shifted, tail;
};

static ReducedExp reduceExp(FloatCode &f, Value x) {
  using namespace coefficients;
  ArrayRef<double> ln2 = f.isDouble() ? ArrayRef(ln2F64) : ArrayRef(ln2F32);
  Value shifted = f.fma(x, f.number(f.isDouble() ? log2eF64[0] : log2eF32[0]), f.number(f.roundingOffset()));
  Value n = f.sub(shifted, f.number(f.roundingOffset()));
  Value r = f.fma(n, f.number(-ln2[0]), x);
  r = f.fma(n, f.number(-ln2[1]), r);
  Value q = f.polynomial(f.isDouble() ? ArrayRef(expF64) : ArrayRef(expF32), r);
  return {shifted, f.fma(f.mul(q, r), r, r)};
}

static ReducedExp reduceExp2(FloatCode &f, Value high, Value low) {
  using namespace coefficients;
  Value shifted = f.roundShifted(high);
  Value r = f.sub(high, f.sub(shifted, f.number(f.roundingOffset())));
  if (low)
    r = f.add(r, low);
  return {shifted, f.mul(r, f.polynomial(f.isDouble() ? ArrayRef(exp2F64) : ArrayRef(exp2F32), r))};
}

/// Returns (1 + tail) * 2^n in two steps, because 2^n itself may be denormal or overflow. Where `isZero`, returns 0
/// without a product that underflows, which is slow on CPUs of Intel.
static Value scale(FloatCode &f, const ReducedExp &reduced, Value isZero) {
  Value offset = f.number(f.roundingOffset());
  Value n = f.sub(reduced.shifted, offset);
  Value half = f.fma(n, f.number(0.5), offset);
  Value rest = f.add(f.sub(n, f.sub(half, offset)), offset);
  Value significand = f.select(isZero, f.number(0), f.add(reduced.tail, f.number(1)));
  return f.mul(f.mul(significand, f.powerOfTwo(half)), f.powerOfTwo(rest));
}

Value emitExp(FloatCode &f, Value x) {
  // Beyond these bounds the result is 0 or infinity for every x.
  double least = f.isDouble() ? -746 : -104;
  Value isZero = f.less(x, f.number(least));
  x = f.atMost(f.atLeast(x, least), f.isDouble() ? 710 : 89);
  return scale(f, reduceExp(f, x), isZero);
}

static Value emitExp2(FloatCode &f, Value high, Value low) {
  double least = f.isDouble() ? -1076 : -151;
  Value isZero = f.less(high, f.number(least));
  high = f.atMost(f.atLeast(high, least), f.isDouble() ? 1025 : 129);
  return scale(f, reduceExp2(f, high, low), isZero);
}

Value emitExp2(FloatCode &f, Value x) { return emitExp2(f, x, Value()); }

Value emitExp2OfSum(FloatCode &f, Value high, Value low) { return emitExp2(f, high, low); }

Value emitTanh(FloatCode &f, Value x) {
  // tanh(|x|) = t / (t + 2) with t = exp(2 |x|) - 1 keeps full precision near 0. Beyond the bound the result is 1.
  Value y = f.atMost(f.abs(x), f.isDouble() ? 20 : 10);
  ReducedExp reduced = reduceExp(f, f.add(y, y));
  Value power = f.powerOfTwo(reduced.shifted);
  Value t = f.fma(power, reduced.tail, f.sub(power, f.number(1)));
  return f.copySign(f.div(t, f.add(t, f.number(2))), x);
}

Value emitErf(FloatCode &f, Value x) {
  using namespace coefficients;
  Value t = f.atMost(f.abs(x), f.isDouble() ? 6 : 4.25);
  Value square = f.mul(t, t);
  Value small = f.fma(x, f.polynomial(f.isDouble() ? ArrayRef(erfF64) : ArrayRef(erfF32), square), x);
  // erf(t) = 1 - exp(-t^2) * erfcx(t), where erfcx is smooth in u.
  Value u = f.div(f.sub(t, f.number(2)), f.add(t, f.number(2)));
  Value erfcx = f.polynomial(f.isDouble() ? ArrayRef(erfcxF64) : ArrayRef(erfcxF32), u);
  ReducedExp reduced = reduceExp(f, f.negate(square));
  Value gauss = f.powerOfTwo(reduced.shifted);
  gauss = f.fma(gauss, reduced.tail, gauss);
  Value large = f.fma(f.negate(gauss), erfcx, f.number(1));
  return f.select(f.less(t, f.number(1)), small, f.copySign(large, x));
}

Value emitErfc(FloatCode &f, Value x) {
  // erfc(t) = 2^(t q(t)). Beyond the bound q is constant, and 2^-127 becomes 0.
  Value t = f.abs(x);
  Value q = f.polynomial(coefficients::erfcWholeF32, f.atMost(t, 4.25));
  ReducedExp reduced = reduceExp2(f, f.atLeast(f.mul(t, q), -127), Value());
  Value power = f.powerOfTwo(reduced.shifted);
  Value upper = f.fma(power, reduced.tail, power);
  return f.select(f.less(x, f.number(0)), f.sub(f.number(2), upper), upper);
}

} // namespace kpkg::lower
