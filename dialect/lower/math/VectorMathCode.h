// Emits arithmetic on one float type, scalar or vector, for the code of elementary functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kpkg::lower {

/// Builds values of `type`: f32 or f64, or a fixed vector of it. All methods take and return values of that type.
/// `bits` and the integer methods use the integer type of the same width and shape. Comparisons return i1 of the same
/// shape.
class FloatCode {
public:
  FloatCode(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type);
  virtual ~FloatCode() = default;

  mlir::Type type() const { return floatType; }
  bool isDouble() const { return wide; }
  mlir::OpBuilder &builder() { return b; }
  /// Returns a builder for another type.
  FloatCode as(mlir::Type type) { return FloatCode(b, b.getLoc(), type); }
  /// Returns f32 or f64 with the shape of type().
  mlir::Type typeLike(mlir::Type element) const;

  mlir::Value number(double value);
  mlir::Value add(mlir::Value x, mlir::Value y);
  mlir::Value sub(mlir::Value x, mlir::Value y);
  mlir::Value mul(mlir::Value x, mlir::Value y);
  /// Divides with correct rounding. An override may be off by 2 units in the last place for speed.
  virtual mlir::Value div(mlir::Value x, mlir::Value y);
  mlir::Value fma(mlir::Value x, mlir::Value y, mlir::Value z);
  mlir::Value negate(mlir::Value x);
  mlir::Value abs(mlir::Value x);
  mlir::Value floor(mlir::Value x);
  mlir::Value copySign(mlir::Value magnitude, mlir::Value sign);
  /// Evaluates c[0] + c[1] x + ... by Horner's rule.
  mlir::Value polynomial(llvm::ArrayRef<double> c, mlir::Value x);

  mlir::Value compare(mlir::arith::CmpFPredicate predicate, mlir::Value x, mlir::Value y);
  mlir::Value less(mlir::Value x, mlir::Value y) { return compare(mlir::arith::CmpFPredicate::OLT, x, y); }
  mlir::Value greater(mlir::Value x, mlir::Value y) { return compare(mlir::arith::CmpFPredicate::OGT, x, y); }
  mlir::Value equal(mlir::Value x, mlir::Value y) { return compare(mlir::arith::CmpFPredicate::OEQ, x, y); }
  mlir::Value both(mlir::Value p, mlir::Value q);
  mlir::Value either(mlir::Value p, mlir::Value q);
  mlir::Value select(mlir::Value condition, mlir::Value x, mlir::Value y);
  /// Return the smaller, and the larger number. A NaN in `x` is kept, and `bound` is no NaN.
  mlir::Value atMost(mlir::Value x, double bound);
  mlir::Value atLeast(mlir::Value x, double bound);

  mlir::Value bits(mlir::Value x);
  mlir::Value fromBits(mlir::Value x);
  mlir::Value integer(uint64_t value);
  mlir::Value addInteger(mlir::Value x, mlir::Value y);
  mlir::Value subInteger(mlir::Value x, mlir::Value y);
  mlir::Value andInteger(mlir::Value x, mlir::Value y);
  mlir::Value orInteger(mlir::Value x, mlir::Value y);
  mlir::Value xorInteger(mlir::Value x, mlir::Value y);
  mlir::Value shiftLeft(mlir::Value x, int64_t count);
  mlir::Value shiftRight(mlir::Value x, int64_t count); ///< Logical shift.
  mlir::Value testBits(mlir::Value x, uint64_t mask);   ///< (x & mask) != 0.

  /// Rounds x to an integer and returns the integer plus `roundingOffset()`. The low significand bits hold the integer
  /// in two's complement.
  mlir::Value roundShifted(mlir::Value x) { return add(x, number(roundingOffset())); }
  double roundingOffset() const { return wide ? 0x1.8p52 : 0x1.8p23; }
  /// Returns 2^n for a `shifted` number from roundShifted, when 2^n is a normal number.
  mlir::Value powerOfTwo(mlir::Value shifted);

protected:
  mlir::ImplicitLocOpBuilder b;

private:
  mlir::Type floatType, integerType;
  bool wide;
};

} // namespace kpkg::lower
