// Replaces divisions by loop-invariant divisors in a producer loop by multiplications.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: kgpu.roles producer_warp { scf.for ... { %q = arith.floordivsi %x, %d : i32 ... kgpu.acquire ... } } ...
// After:  kgpu.roles producer_warp {
//           %s = 31 + (the least l with 2^l >= %d)        %m = 2^%s / %d + 1
//           scf.for ... { %q = scf.if (%d >= 1) { the upper bits of %x * %m, from bit %s on } else { arith.floordivsi
//           %x, %d } ... }
//
// With m * d = 2^s + e, 0 < e <= d <= 2^l, floor(x * m / 2^s) is floor(x / d) for 0 <= x < 2^31. See Granlund and
// Montgomery, "Division by invariant integers using multiplication", theorem 4.2. For negative x, the quotient is the
// complement of the quotient of the complement.
#include "dialect/lower/nvvm/StepDivisions.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace kpkg::lower::nvvm {
namespace {
/// The multiplier and the shift that replace a divisor.
struct Reciprocal {
  Value factor, shift; ///< Both i32.
};

Reciprocal reciprocalOf(ImplicitLocOpBuilder &builder, Value divisor) {
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  auto constant = [&](Type type, int64_t value) {
    return arith::ConstantOp::create(builder, builder.getIntegerAttr(type, value)).getResult();
  };
  Value zero = constant(i32, 0), one = constant(i32, 1);
  Value isPositive = arith::CmpIOp::create(builder, arith::CmpIPredicate::sge, divisor, one);
  Value positive = arith::SelectOp::create(builder, isPositive, divisor, one);
  // Counts the bits of positive - 1 by binary search.
  Value rest = arith::SubIOp::create(builder, positive, one), bits = zero;
  for (int64_t half : {16, 8, 4, 2, 1}) {
    Value isMore = arith::CmpIOp::create(builder, arith::CmpIPredicate::uge, rest, constant(i32, int64_t(1) << half));
    Value by = arith::SelectOp::create(builder, isMore, constant(i32, half), zero);
    rest = arith::ShRUIOp::create(builder, rest, by);
    bits = arith::AddIOp::create(builder, bits, by);
  }
  bits = arith::AddIOp::create(builder, bits, rest);
  Value shift = arith::AddIOp::create(builder, bits, constant(i32, 31));
  Value power = arith::ShLIOp::create(builder, constant(i64, 1), arith::ExtUIOp::create(builder, i64, shift));
  Value quotient = arith::DivUIOp::create(builder, power, arith::ExtUIOp::create(builder, i64, positive));
  Value factor = arith::TruncIOp::create(builder, i32, arith::AddIOp::create(builder, quotient, constant(i64, 1)));
  return {factor, shift};
}

Value quotientBy(ImplicitLocOpBuilder &builder, const Reciprocal &reciprocal, Value number) {
  Type i32 = builder.getI32Type(), i64 = builder.getI64Type();
  Value sign =
      arith::ShRSIOp::create(builder, number, arith::ConstantOp::create(builder, builder.getI32IntegerAttr(31)));
  Value positive = arith::ExtUIOp::create(builder, i64, arith::XOrIOp::create(builder, number, sign));
  Value product = arith::MulIOp::create(builder, positive, arith::ExtUIOp::create(builder, i64, reciprocal.factor));
  Value quotient = arith::TruncIOp::create(
      builder, i32, arith::ShRUIOp::create(builder, product, arith::ExtUIOp::create(builder, i64, reciprocal.shift)));
  return arith::XOrIOp::create(builder, quotient, sign);
}

/// Returns the divisions in blocks that wait for a slot.
SmallVector<arith::FloorDivSIOp> divisionsInSteps(kgpu::RolesOp roles) {
  SetVector<Block *> steps;
  roles.getProducerWarp().walk([&](kgpu::AcquireOp acquire) { steps.insert(acquire->getBlock()); });
  SmallVector<arith::FloorDivSIOp> found;
  for (Block *step : steps)
    llvm::append_range(found, step->getOps<arith::FloorDivSIOp>());
  return found;
}
} // namespace

bool dividesInSteps(kgpu::RolesOp roles) { return !divisionsInSteps(roles).empty(); }

void multiplyInSteps(kgpu::RolesOp roles) {
  Block &first = roles.getProducerWarp().front();
  auto isHere = [&](Value divisor) { return divisor.getDefiningOp() && divisor.getDefiningOp()->getBlock() == &first; };
  SmallVector<arith::FloorDivSIOp> divisions = divisionsInSteps(roles);
  // If any division remains, the step is slow anyway, and its registers are better used otherwise.
  for (arith::FloorDivSIOp division : divisions) {
    bool isKnownBefore =
        isHere(division.getRhs()) || !roles.getProducerWarp().isAncestor(division.getRhs().getParentRegion());
    if (!division.getType().isInteger(32) || division->getBlock() == &first || !isKnownBefore)
      return;
  }
  DenseMap<Value, Reciprocal> reciprocals;
  for (arith::FloorDivSIOp division : divisions) {
    Value divisor = division.getRhs();
    ImplicitLocOpBuilder builder(division.getLoc(), division);
    auto [known, isNew] = reciprocals.try_emplace(divisor);
    if (isNew) {
      isHere(divisor) ? builder.setInsertionPointAfter(divisor.getDefiningOp())
                      : builder.setInsertionPointToStart(&first);
      known->second = reciprocalOf(builder, divisor);
      builder.setInsertionPoint(division);
    }
    // The comparison is repeated in each step, because registers are scarcer than instructions.
    Value isPositive = arith::CmpIOp::create(builder, arith::CmpIPredicate::sgt, divisor,
                                             arith::ConstantOp::create(builder, builder.getI32IntegerAttr(0)));
    auto branch = scf::IfOp::create(builder, division.getType(), isPositive, /*withElseRegion=*/true);
    division.getResult().replaceAllUsesWith(branch.getResult(0));
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, quotientBy(builder, known->second, division.getLhs()));
    builder.setInsertionPointToStart(branch.elseBlock());
    auto yield = scf::YieldOp::create(builder, division.getResult());
    division->moveBefore(yield);
  }
}
} // namespace kpkg::lower::nvvm
