// sin and cos: the argument less a multiple of pi/2, and two polynomials.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reduction in three parts is Cody and Waite's; past its range the lanes go one by one through Payne and Hanek's ("Radian Reduction
// for Trigonometric Functions", 1983), which multiplies by the bits of 2/pi that matter.
#include "dialect/lower/cpu/VectorMathCoefficients.h"
#include "dialect/lower/cpu/VectorMathFunctions.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;

namespace kpkg::lower::cpu {
namespace {

/// x = quadrant * pi/2 + high + low, |high| <= pi/4; the quadrant modulo 4 is in the low bits of an integer.
struct Angle {
  Value quadrant, high, low;
};

} // namespace

/// The largest |x| for which three parts of pi/2 leave an error below 2^-10 units in the last place of the angle.
static double simpleRange(const FloatCode &f) { return f.isDouble() ? 0x1p27 : 0x1p16; }

static Angle reduceSmall(FloatCode &f, Value x) {
  using namespace coefficients;
  ArrayRef<double> halfPi = f.isDouble() ? ArrayRef(halfPiF64) : ArrayRef(halfPiF32);
  Value offset = f.number(f.roundingOffset());
  Value shifted = f.fma(x, f.number(f.isDouble() ? 0x1.45f306dc9c883p-1 : 0x1.45f306p-1), offset);
  Value n = f.sub(shifted, offset);
  Value first = f.fma(n, f.number(-halfPi[0]), x); // exact
  Value second = f.fma(n, f.number(-halfPi[1]), first);
  // What the rounding of `second` lost, then the last part of pi/2.
  Value product = f.mul(n, f.number(-halfPi[1]));
  Value productLow = f.fma(n, f.number(-halfPi[1]), f.negate(product));
  Value virtualProduct = f.sub(second, first);
  Value lost = f.add(f.sub(first, f.sub(second, virtualProduct)), f.sub(product, virtualProduct));
  Value low = f.fma(n, f.number(-halfPi[2]), f.add(lost, productLow));
  return {f.bits(shifted), second, low};
}

static Value sineOrCosine(FloatCode &f, const Angle &angle, int64_t quarterTurns) {
  using namespace coefficients;
  Value r = angle.high, square = f.mul(r, r);
  Value cube = f.mul(square, r);
  Value sine = f.polynomial(f.isDouble() ? ArrayRef(sinF64) : ArrayRef(sinF32), square);
  sine = f.add(r, f.fma(cube, sine, angle.low));
  // 1 - r^2/2 in a pair, since the next term is not small against its rounding; cos(r + low) = cos(r) - r * low.
  Value half = f.mul(square, f.number(0.5));
  Value leading = f.sub(f.number(1), half);
  Value lost = f.sub(f.sub(f.number(1), leading), half);
  Value cosine = f.polynomial(f.isDouble() ? ArrayRef(cosF64) : ArrayRef(cosF32), square);
  cosine = f.fma(f.mul(square, square), cosine, f.fma(f.negate(r), angle.low, lost));
  cosine = f.add(leading, cosine);

  Value quadrant = f.addInteger(angle.quadrant, f.integer(quarterTurns));
  Value result = f.select(f.testBits(quadrant, 1), cosine, sine);
  Value sign = f.shiftLeft(f.andInteger(quadrant, f.integer(2)), f.isDouble() ? 62 : 30);
  return f.fromBits(f.xorInteger(f.bits(result), sign));
}

static Value emitSinOrCos(FloatCode &f, Value x, int64_t quarterTurns) {
  return sineOrCosine(f, reduceSmall(f, x), quarterTurns);
}

Value emitSin(FloatCode &f, Value x) {
  // The sum of parts would turn -0 into 0.
  return f.select(f.equal(x, f.number(0)), x, emitSinOrCos(f, x, 0));
}
Value emitCos(FloatCode &f, Value x) { return emitSinOrCos(f, x, 1); }

} // namespace kpkg::lower::cpu
