// Generates random elementwise arithmetic, comparisons and conversions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KernelGenerator.h"
#include <cmath>

using namespace mlir;
using namespace kpkg;
using namespace kpkg::sim::test;

void KernelGenerator::floatUnary(Known x) {
  double m = x.magnitude;
  Type type = x.value.getType();
  // Functions with a limited domain take |x| + c; functions that grow fast take a clamped x.
  auto positive = [&](double shift) -> Value {
    Value magnitude = math::AbsFOp::create(b, x.value);
    return arith::AddFOp::create(b, magnitude, constant(type, shift));
  };
  auto limited = [&](double limit) { return m > limit ? clamp(x, limit) : x.value; };
  switch (below(18)) {
  case 0:
    add(math::ExpOp::create(b, limited(4)), 55);
    break;
  case 1:
    add(math::Exp2Op::create(b, limited(5)), 32);
    break;
  case 2:
    add(math::LogOp::create(b, positive(0.5)), std::log(m + 2));
    break;
  case 3:
    add(math::Log2Op::create(b, positive(0.25)), std::log2(m + 4));
    break;
  case 4:
    add(math::SqrtOp::create(b, positive(0)), std::sqrt(m) + 1);
    break;
  case 5:
    add(math::RsqrtOp::create(b, positive(0.25)), 2);
    break;
  case 6:
    add(math::TanhOp::create(b, x.value), 1);
    break;
  case 7:
    add(math::ErfOp::create(b, x.value), 1);
    break;
  case 8:
    add(math::SinOp::create(b, x.value), 1);
    break;
  case 9:
    add(math::CosOp::create(b, x.value), 1);
    break;
  case 10:
    add(math::FloorOp::create(b, x.value), m + 1);
    break;
  case 11:
    add(math::CeilOp::create(b, x.value), m + 1);
    break;
  case 12:
    add(math::RoundEvenOp::create(b, x.value), m + 1);
    break;
  case 13:
    add(math::AbsFOp::create(b, x.value), m);
    break;
  case 14:
    add(arith::NegFOp::create(b, x.value), m);
    break;
  case 15:
    add(math::TruncOp::create(b, x.value), m);
    break;
  case 16:
    add(math::RoundOp::create(b, x.value), m + 1);
    break;
  default:
    add(arith::DivFOp::create(b, constant(type, 1), positive(0.5)), 2);
    break;
  }
}

void KernelGenerator::floatBinary(Known x) {
  Known y = match(x.element(), x.shape());
  Type type = x.value.getType();
  double sum = x.magnitude + y.magnitude, product = x.magnitude * y.magnitude;
  switch (below(9)) {
  case 0:
  case 1:
    add(arith::AddFOp::create(b, x.value, y.value), sum);
    break;
  case 2:
    add(arith::SubFOp::create(b, x.value, y.value), sum);
    break;
  case 3:
  case 4:
    add(arith::MulFOp::create(b, x.value, y.value), product);
    break;
  case 5:
    add(arith::MaximumFOp::create(b, x.value, y.value), sum);
    break;
  case 6:
    add(arith::MinimumFOp::create(b, x.value, y.value), sum);
    break;
  case 7: {
    Value magnitude = math::AbsFOp::create(b, y.value);
    Value divisor = arith::AddFOp::create(b, magnitude, constant(type, 0.5));
    add(arith::DivFOp::create(b, x.value, divisor), 2 * x.magnitude);
    break;
  }
  default: {
    // One rounding, or two that must not be contracted.
    Known z = match(x.element(), x.shape());
    if (chance(50)) {
      add(math::FmaOp::create(b, x.value, y.value, z.value), product + z.magnitude);
    } else {
      Value rounded = arith::MulFOp::create(b, x.value, y.value);
      add(arith::AddFOp::create(b, rounded, z.value), product + z.magnitude);
    }
    break;
  }
  }
}

void KernelGenerator::integerBinary(Known x) {
  Known y = match(x.element(), x.shape());
  Type type = x.value.getType();
  int64_t width = integerWidth(x.element());
  // A divisor in 1..8 and a shift amount below the width.
  auto divisor = [&]() -> Value {
    Value low = arith::AndIOp::create(b, y.value, constant(type, 7));
    return arith::AddIOp::create(b, low, constant(type, 1));
  };
  auto amount = [&]() -> Value { return arith::AndIOp::create(b, y.value, constant(type, width - 1)); };
  Value r;
  switch (below(18)) {
  case 0:
    r = arith::AddIOp::create(b, x.value, y.value);
    break;
  case 1:
    r = arith::SubIOp::create(b, x.value, y.value);
    break;
  case 2:
    r = arith::MulIOp::create(b, x.value, y.value);
    break;
  case 3:
    r = arith::AndIOp::create(b, x.value, y.value);
    break;
  case 4:
    r = arith::OrIOp::create(b, x.value, y.value);
    break;
  case 5:
    r = arith::XOrIOp::create(b, x.value, y.value);
    break;
  case 6:
    r = arith::MaxSIOp::create(b, x.value, y.value);
    break;
  case 7:
    r = arith::MinSIOp::create(b, x.value, y.value);
    break;
  case 8:
    r = arith::MaxUIOp::create(b, x.value, y.value);
    break;
  case 9:
    r = arith::MinUIOp::create(b, x.value, y.value);
    break;
  case 10:
    r = arith::DivSIOp::create(b, x.value, divisor());
    break;
  case 11:
    r = arith::RemSIOp::create(b, x.value, divisor());
    break;
  case 12:
    r = arith::FloorDivSIOp::create(b, x.value, divisor());
    break;
  case 13:
    r = arith::DivUIOp::create(b, x.value, divisor());
    break;
  case 14:
    r = arith::RemUIOp::create(b, x.value, divisor());
    break;
  case 15:
    r = arith::ShLIOp::create(b, x.value, amount());
    break;
  case 16:
    r = arith::ShRSIOp::create(b, x.value, amount());
    break;
  default:
    r = arith::ShRUIOp::create(b, x.value, amount());
    break;
  }
  add(r, INFINITY);
}

void KernelGenerator::boolBinary(Known x) {
  Known y = match(x.element(), x.shape());
  switch (below(3)) {
  case 0:
    add(arith::AndIOp::create(b, x.value, y.value), 1);
    break;
  case 1:
    add(arith::OrIOp::create(b, x.value, y.value), 1);
    break;
  default:
    add(arith::XOrIOp::create(b, x.value, y.value), 1);
    break;
  }
}

void KernelGenerator::compareAndSelect(Known x) {
  if (storageSize(x.element()) == 1 && isa<FloatType>(x.element()))
    return convert(x);
  Known mask = x;
  if (!x.element().isInteger(1)) {
    Known y = match(x.element(), x.shape());
    Value compared;
    if (isa<FloatType>(x.element())) {
      using enum arith::CmpFPredicate;
      arith::CmpFPredicate predicates[] = {OLT, OLE, OGT, OGE, OEQ, UNE, UNO, ORD, ONE, ULT, UGE};
      compared = arith::CmpFOp::create(b, pick(predicates), x.value, y.value);
    } else {
      using enum arith::CmpIPredicate;
      arith::CmpIPredicate predicates[] = {eq, ne, slt, sle, sgt, sge, ult, ule, ugt, uge};
      compared = arith::CmpIOp::create(b, pick(predicates), x.value, y.value);
    }
    mask = add(compared, 1);
  }
  if (chance(25))
    return; // The mask itself is used.
  Type element = chance(50) && !x.element().isInteger(1) ? x.element() : chance(60) ? pickFloat() : pickInteger();
  Known yes = match(element, x.shape()), no = match(element, x.shape());
  add(arith::SelectOp::create(b, mask.value, yes.value, no.value), yes.magnitude + no.magnitude);
}

void KernelGenerator::convert(Known x) {
  Type from = x.element();
  auto tileOf = [&](Type element) { return RankedTensorType::get(x.shape(), element); };
  if (isa<FloatType>(from)) {
    bool small = x.magnitude < 100 && !result.hasSpecialValues && storageSize(from) > 1;
    if (small && chance(25)) {
      Type to = pickInteger();
      if (to.isIndex())
        to = b.getI64Type();
      if (chance(70)) {
        add(arith::FPToSIOp::create(b, tileOf(to), x.value), 100);
      } else {
        Value magnitude = math::AbsFOp::create(b, x.value);
        add(arith::FPToUIOp::create(b, tileOf(to), magnitude), 100);
      }
      return;
    }
    Type to = pickFloat();
    bool intoBytes = storageSize(from) > 1 && x.magnitude < 200 && chance(12);
    if (intoBytes)
      to = chance(50) ? Type(Float8E4M3FNType::get(b.getContext())) : Type(Float8E5M2Type::get(b.getContext()));
    if (storageSize(to) > storageSize(from))
      add(arith::ExtFOp::create(b, tileOf(to), x.value), x.magnitude);
    else if (storageSize(to) < storageSize(from))
      add(arith::TruncFOp::create(b, tileOf(to), x.value), x.magnitude * 1.1);
    return;
  }
  if (chance(40) && !from.isIndex()) {
    Type to = pickFloat();
    // A range that f16 holds: i8, i1, or a value that is known to be small.
    bool fits = integerWidth(from) <= 8 || x.magnitude <= 1000 || !to.isF16();
    if (!fits)
      to = b.getF32Type();
    bool isSigned = !from.isInteger(1) && chance(70);
    double magnitude = std::min(x.magnitude, std::ldexp(1.0, integerWidth(from)));
    if (isSigned)
      add(arith::SIToFPOp::create(b, tileOf(to), x.value), magnitude);
    else
      add(arith::UIToFPOp::create(b, tileOf(to), x.value), std::ldexp(1.0, integerWidth(from)));
    return;
  }
  Type to = pickInteger();
  if (from.isIndex() || to.isIndex()) {
    if (from == to || from.isInteger(1))
      return;
    add(arith::IndexCastOp::create(b, tileOf(to), x.value), INFINITY);
  } else if (integerWidth(to) > integerWidth(from)) {
    if (chance(50) && !from.isInteger(1))
      add(arith::ExtSIOp::create(b, tileOf(to), x.value), x.magnitude);
    else
      add(arith::ExtUIOp::create(b, tileOf(to), x.value), std::ldexp(1.0, integerWidth(from)));
  } else if (integerWidth(to) < integerWidth(from)) {
    add(arith::TruncIOp::create(b, tileOf(to), x.value), INFINITY);
  }
}
