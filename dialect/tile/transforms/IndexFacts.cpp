// Derives divisors, signs and widths of index values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/tile/transforms/IndexFacts.h"
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/InferIntRangeInterface.h"
#include <numeric>

using namespace mlir;

namespace kpkg::tile {

namespace {
constexpr int64_t largestDivisor = int64_t(1) << 20;
/// The recursion depth, sufficient for any index that is written by hand.
constexpr unsigned deepest = 16;

int64_t powerOfTwoIn(int64_t value) { return value == 0 ? largestDivisor : std::min(value & -value, largestDivisor); }

/// Returns the loop whose induction variable is `value`.
scf::ForOp loopOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  return loop && loop.getInductionVar() == value ? loop : scf::ForOp();
}

int64_t divisor(Value value, unsigned depth) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return powerOfTwoIn(constant.getSExtValue());
  if (depth == deepest)
    return 1;
  auto of = [&](Value operand) { return divisor(operand, depth + 1); };
  if (scf::ForOp loop = loopOf(value))
    return std::min(of(loop.getLowerBound()), of(loop.getStep()));
  Operation *op = value.getDefiningOp();
  if (!op)
    return 1;
  // Truncation preserves divisibility by such small powers of two.
  if (isa<arith::IndexCastOp, arith::ExtSIOp, arith::TruncIOp>(op))
    return of(op->getOperand(0));
  return TypeSwitch<Operation *, int64_t>(op)
      .Case([](DimOp dim) {
        auto view = cast<ViewType>(dim.getView().getType());
        return int64_t(dim.getDimension()) == view.getUnit() ? powerOfTwoIn(view.getFacts().divisible) : 1;
      })
      .Case([](StrideOp stride) {
        auto view = cast<ViewType>(stride.getView().getType());
        return int64_t(stride.getDimension()) == view.getUnit() ? 1 : powerOfTwoIn(view.getFacts().divisible);
      })
      .Case([&](arith::AddIOp add) { return std::min(of(add.getLhs()), of(add.getRhs())); })
      .Case([&](arith::SubIOp sub) { return std::min(of(sub.getLhs()), of(sub.getRhs())); })
      .Case([&](arith::MulIOp mul) { return std::min(of(mul.getLhs()) * of(mul.getRhs()), largestDivisor); })
      .Case([&](arith::ShLIOp shift) {
        APInt count;
        bool isKnown = matchPattern(shift.getRhs(), m_ConstantInt(&count)) && count.ult(20);
        return isKnown ? std::min(of(shift.getLhs()) << count.getZExtValue(), largestDivisor) : of(shift.getLhs());
      })
      .Case([&](arith::SelectOp select) { return std::min(of(select.getTrueValue()), of(select.getFalseValue())); })
      .Case([&](arith::RemSIOp rest) { return std::min(of(rest.getLhs()), of(rest.getRhs())); })
      .Case([&](scf::IfOp either) {
        unsigned number = cast<OpResult>(value).getResultNumber();
        return std::min(of(either.thenYield().getOperand(number)), of(either.elseYield().getOperand(number)));
      })
      .Case([&](arith::MaxSIOp max) { return std::min(of(max.getLhs()), of(max.getRhs())); })
      .Case([&](arith::MinSIOp min) { return std::min(of(min.getLhs()), of(min.getRhs())); })
      .Default([](Operation *) { return int64_t(1); });
}

/// Returns whether an op without operands declares its result non-negative.
bool isNeverNegative(Operation *op) {
  auto ranges = dyn_cast<InferIntRangeInterface>(op);
  if (!ranges || op->getNumOperands() != 0)
    return false;
  bool result = false;
  ranges.inferResultRanges({}, [&](Value, const ConstantIntRanges &range) { result = range.smin().isNonNegative(); });
  return result;
}

bool nonNegative(Value value, unsigned depth) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return !constant.isNegative();
  if (depth == deepest)
    return false;
  auto is = [&](Value operand) { return nonNegative(operand, depth + 1); };
  if (scf::ForOp loop = loopOf(value))
    return is(loop.getLowerBound()); // Steps are positive.
  if (auto argument = dyn_cast<BlockArgument>(value))
    return isa<ForTilesOp>(argument.getOwner()->getParentOp());
  Operation *op = value.getDefiningOp();
  return TypeSwitch<Operation *, bool>(op)
      .Case<BlockIdOp, GridDimOp, DimOp>([](Operation *) { return true; })
      .Case<arith::AddIOp, arith::MulIOp, arith::DivSIOp, arith::FloorDivSIOp, arith::CeilDivSIOp, arith::MinSIOp>(
          [&](Operation *both) { return is(both->getOperand(0)) && is(both->getOperand(1)); })
      .Case([&](arith::MaxSIOp max) { return is(max.getLhs()) || is(max.getRhs()); })
      .Case([&](arith::SelectOp select) { return is(select.getTrueValue()) && is(select.getFalseValue()); })
      .Case([&](arith::RemSIOp rest) { return is(rest.getLhs()); })
      .Case<arith::DivUIOp, arith::RemUIOp>(
          [&](Operation *both) { return is(both->getOperand(0)) && is(both->getOperand(1)); })
      .Default([](Operation *other) { return isNeverNegative(other); });
}

bool fits32(Value value, unsigned depth) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.isSignedIntN(32);
  Operation *op = value.getDefiningOp();
  if (!op || depth == deepest)
    return false;
  auto is = [&](Value operand) { return fits32(operand, depth + 1); };
  return TypeSwitch<Operation *, bool>(op)
      .Case<BlockIdOp, GridDimOp>([](Operation *) { return true; })
      .Case([](DimOp dim) { return cast<ViewType>(dim.getView().getType()).getFacts().index == 32; })
      .Case([&](arith::IndexCastOp cast) { return is(cast.getIn()); })
      .Case<arith::MaxSIOp, arith::MinSIOp>(
          [&](Operation *both) { return is(both->getOperand(0)) && is(both->getOperand(1)); })
      .Default([](Operation *) { return false; });
}
} // namespace

bool fitsInt32(Value index) { return fits32(index, 0); }
int64_t divisorOf(Value index) { return divisor(index, 0); }
bool isNonNegative(Value index) { return nonNegative(index, 0); }

} // namespace kpkg::tile
