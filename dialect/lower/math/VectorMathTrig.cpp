// Emits sin and cos: the argument is reduced modulo pi/2, then two polynomials are evaluated.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The reduction in three parts is Cody and Waite's. Beyond its range, lanes are reduced one by one by the method of
// Payne and Hanek ("Radian Reduction for Trigonometric Functions", 1983). It multiplies by the bits of 2/pi that affect
// the result.
#include "dialect/lower/math/VectorMathCoefficients.h"
#include "dialect/lower/math/VectorMathFunctions.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <array>
#include <limits>

using namespace mlir;

namespace kpkg::lower {
namespace {

/// x = quadrant * pi/2 + high + low with |high| <= pi/4. The low bits of an integer hold the quadrant modulo 4.
struct Angle {
  Value quadrant, high, low;
};

} // namespace

/// Returns the largest |x| for which the leading part of n * (pi/2) is subtracted exactly.
static double simpleRange(const FloatCode &f) { return f.isDouble() ? 0x1p27 : 0x1p16; }

static Angle reduceSmall(FloatCode &f, Value x) {
  using namespace coefficients;
  ArrayRef<double> halfPi = f.isDouble() ? ArrayRef(halfPiF64) : ArrayRef(halfPiF32);
  Value offset = f.number(f.roundingOffset());
  Value shifted = f.fma(x, f.number(f.isDouble() ? 0x1.45f306dc9c883p-1 : 0x1.45f306p-1), offset);
  Value n = f.sub(shifted, offset);
  Value first = f.fma(n, f.number(-halfPi[0]), x); // Exact.
  // Near a multiple of pi/2 the second part cancels most of the remainder, so it is subtracted without loss.
  Value product = f.mul(n, f.number(halfPi[1]));
  Value productLow = f.fma(n, f.number(halfPi[1]), f.negate(product));
  Value second = f.sub(first, product);
  Value step = f.sub(second, first);
  Value lost = f.sub(f.sub(first, f.sub(second, step)), f.add(product, step));
  Value low = f.fma(n, f.number(-halfPi[2]), f.sub(lost, productLow));
  Value high = f.add(second, low);
  return {f.bits(shifted), high, f.sub(low, f.sub(high, second))};
}

static Value sineOrCosine(FloatCode &f, const Angle &angle, int64_t quarterTurns) {
  using namespace coefficients;
  Value r = angle.high, square = f.mul(r, r);
  Value cube = f.mul(square, r);
  Value sine = f.polynomial(f.isDouble() ? ArrayRef(sinF64) : ArrayRef(sinF32), square);
  sine = f.add(r, f.fma(cube, sine, angle.low));
  // 1 - r^2/2 is a pair, because the next term is not small relative to its rounding error. cos(r + low) = cos(r) - r *
  // low.
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

/// Returns the angle of one finite f64 with |x| >= 2^16, as {i64 quadrant, f64 high, f64 low}.
static std::array<Value, 3> reduceLarge(OpBuilder &builder, Location loc, Value x) {
  using namespace coefficients;
  FloatCode f(builder, loc, builder.getF64Type());
  ImplicitLocOpBuilder b(loc, builder);
  Value pattern = f.bits(x);
  Value biased = f.andInteger(f.shiftRight(pattern, 52), f.integer(0x7ff));
  Value significand =
      f.orInteger(f.andInteger(pattern, f.integer((uint64_t(1) << 52) - 1)), f.integer(uint64_t(1) << 52));
  // x = significand * 2^(biased - 1075). Bits of 2/pi with a weight of 4 or more contribute whole turns. 192 bits after
  // them are enough, because no f64 is closer to a multiple of pi/2 than 2^-62.
  Value first = f.subInteger(biased, f.integer(1075 - 62));
  Value table =
      arith::ConstantOp::create(b, DenseElementsAttr::get(VectorType::get(std::size(twoOverPiBits), b.getI64Type()),
                                                          ArrayRef<uint64_t>(twoOverPiBits)));
  Value word = f.shiftRight(first, 6), shift = f.andInteger(first, f.integer(63));
  Value counterShift = f.subInteger(f.integer(63), shift);
  SmallVector<Value> words, window;
  for (int i = 0; i < 4; ++i) {
    Value position = arith::IndexCastOp::create(b, b.getIndexType(), f.addInteger(word, f.integer(i)));
    words.push_back(vector::ExtractOp::create(b, table, ArrayRef<OpFoldResult>{position}));
  }
  for (int i = 0; i < 3; ++i)
    window.push_back(f.orInteger(arith::ShLIOp::create(b, words[i], shift),
                                 arith::ShRUIOp::create(b, f.shiftRight(words[i + 1], 1), counterShift)));
  // The product modulo 4, in units of pi/2, with 2 bits before the binary point.
  auto middle = arith::MulUIExtendedOp::create(b, significand, window[1]);
  auto last = arith::MulUIExtendedOp::create(b, significand, window[2]);
  auto sum = arith::AddUIExtendedOp::create(b, middle.getLow(), last.getHigh());
  Value carry = arith::ExtUIOp::create(b, b.getI64Type(), sum.getOverflow());
  Value top = arith::MulIOp::create(b, significand, window[0]);
  top = f.addInteger(f.addInteger(top, middle.getHigh()), carry);
  Value high = f.orInteger(f.shiftLeft(top, 2), f.shiftRight(sum.getSum(), 62));
  Value low = f.orInteger(f.shiftLeft(sum.getSum(), 2), f.shiftRight(last.getLow(), 62));
  // A fraction of at least one half belongs to the next quadrant. In two's complement it is negative already.
  Value negative = f.shiftRight(high, 63);
  Value quadrant = f.addInteger(f.shiftRight(top, 62), negative);
  Value flip = f.subInteger(f.integer(0), negative);
  high = f.xorInteger(high, flip);
  low = f.xorInteger(low, flip); // Off by one unit of 2^-128, which is negligible.
  Value zeros = math::CountLeadingZerosOp::create(b, high);
  Value normalHigh = f.orInteger(arith::ShLIOp::create(b, high, zeros),
                                 arith::ShRUIOp::create(b, f.shiftRight(low, 1), f.subInteger(f.integer(63), zeros)));
  Value normalLow = arith::ShLIOp::create(b, low, zeros);
  Value rest = f.orInteger(f.shiftLeft(f.andInteger(normalHigh, f.integer(0x7ff)), 42), f.shiftRight(normalLow, 22));
  auto toFloat = [&](Value integer) -> Value { return arith::SIToFPOp::create(b, b.getF64Type(), integer); };
  Value power = f.fromBits(f.shiftLeft(f.subInteger(f.integer(1023 - 53), zeros), 52));
  Value leading = f.mul(toFloat(f.shiftRight(normalHigh, 11)), power);
  Value trailing = f.mul(f.mul(toFloat(rest), f.number(0x1p-53)), power);
  Value angle = f.mul(leading, f.number(halfPiF64[0]));
  Value angleLow = f.fma(leading, f.number(halfPiF64[0]), f.negate(angle));
  angleLow = f.fma(trailing, f.number(halfPiF64[0]), f.fma(leading, f.number(halfPiF64[1]), angleLow));
  Value sum0 = f.add(angle, angleLow);
  angleLow = f.add(f.sub(angle, sum0), angleLow);
  // Applies the sign of the fraction, then the sign of x.
  Value sign = f.xorInteger(f.shiftLeft(negative, 63), f.andInteger(pattern, f.integer(uint64_t(1) << 63)));
  Value below = f.less(x, f.number(0));
  quadrant = arith::SelectOp::create(b, below, f.subInteger(f.integer(0), quadrant), quadrant);
  return {quadrant, f.fromBits(f.xorInteger(f.bits(sum0), sign)), f.fromBits(f.xorInteger(f.bits(angleLow), sign))};
}

/// Runs reduceLarge for one lane, in the format of `f`.
static SmallVector<Value> reduceLargeLane(FloatCode &f, OpBuilder &builder, Location loc, Value x) {
  if (f.isDouble())
    return llvm::to_vector(reduceLarge(builder, loc, x));
  ImplicitLocOpBuilder b(loc, builder);
  auto [quadrant, high, low] = reduceLarge(builder, loc, arith::ExtFOp::create(b, b.getF64Type(), x));
  Value angle = arith::AddFOp::create(b, high, low);
  Value narrow = arith::TruncFOp::create(b, b.getF32Type(), angle);
  Value rest = arith::SubFOp::create(b, angle, arith::ExtFOp::create(b, b.getF64Type(), narrow));
  return {arith::TruncIOp::create(b, b.getI32Type(), quadrant), narrow,
          arith::TruncFOp::create(b, b.getF32Type(), rest)};
}

/// Replaces the angles of lanes beyond the simple range, if there are any.
static Angle fixLarge(FloatCode &f, Value x, const Angle &simple) {
  OpBuilder &builder = f.builder();
  Location loc = x.getLoc();
  Value magnitude = f.abs(x);
  Value large = f.both(f.greater(magnitude, f.number(simpleRange(f))),
                       f.less(magnitude, f.number(std::numeric_limits<double>::infinity())));
  auto vector = dyn_cast<VectorType>(f.type());
  SmallVector<Value> values = {simple.quadrant, simple.high, simple.low};
  if (!vector) {
    auto branch = scf::IfOp::create(
        builder, loc, large, [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, reduceLargeLane(f, b, l, x)); },
        [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, values); });
    return {branch.getResult(0), branch.getResult(1), branch.getResult(2)};
  }
  int64_t lanes = vector.getNumElements();
  auto flat = [&](Value value) -> Value {
    auto type = cast<VectorType>(value.getType());
    return type.getRank() == 1
               ? value
               : vector::ShapeCastOp::create(builder, loc, VectorType::get(lanes, type.getElementType()), value);
  };
  Value flatLarge = flat(large), flatX = flat(x);
  for (Value &value : values)
    value = flat(value);
  Value any = vector::ReductionOp::create(builder, loc, vector::CombiningKind::OR, flatLarge);
  auto outer = scf::IfOp::create(
      builder, loc, any,
      [&](OpBuilder &b, Location l) {
        Value zero = arith::ConstantIndexOp::create(b, l, 0), one = arith::ConstantIndexOp::create(b, l, 1);
        auto loop = scf::ForOp::create(
            b, l, zero, arith::ConstantIndexOp::create(b, l, lanes), one, values,
            [&](OpBuilder &b, Location l, Value lane, ValueRange angles) {
              Value isLarge = vector::ExtractOp::create(b, l, flatLarge, ArrayRef<OpFoldResult>{lane});
              auto inner = scf::IfOp::create(
                  b, l, isLarge,
                  [&](OpBuilder &b, Location l) {
                    Value element = vector::ExtractOp::create(b, l, flatX, ArrayRef<OpFoldResult>{lane});
                    SmallVector<Value> updated;
                    for (auto [angle, value] : llvm::zip_equal(angles, reduceLargeLane(f, b, l, element)))
                      updated.push_back(vector::InsertOp::create(b, l, value, angle, ArrayRef<OpFoldResult>{lane}));
                    scf::YieldOp::create(b, l, updated);
                  },
                  [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, angles); });
              scf::YieldOp::create(b, l, inner.getResults());
            });
        scf::YieldOp::create(b, l, loop.getResults());
      },
      [&](OpBuilder &b, Location l) { scf::YieldOp::create(b, l, values); });
  SmallVector<Value> results(outer.getResults());
  if (vector.getRank() != 1)
    for (Value &value : results)
      value = vector::ShapeCastOp::create(
          builder, loc, VectorType::get(vector.getShape(), cast<VectorType>(value.getType()).getElementType()), value);
  return {results[0], results[1], results[2]};
}

static Value emitSinOrCos(FloatCode &f, Value x, int64_t quarterTurns) {
  Value result = sineOrCosine(f, fixLarge(f, x, reduceSmall(f, x)), quarterTurns);
  Value finite = f.less(f.abs(x), f.number(std::numeric_limits<double>::infinity()));
  return f.select(finite, result, f.number(std::numeric_limits<double>::quiet_NaN()));
}

Value emitSin(FloatCode &f, Value x) {
  // The sum of the parts would turn -0 into 0.
  return f.select(f.equal(x, f.number(0)), x, emitSinOrCos(f, x, 0));
}
Value emitCos(FloatCode &f, Value x) { return emitSinOrCos(f, x, 1); }

} // namespace kpkg::lower
