// Derives the trip count of a loop as a stack program over the values that a launch knows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bounds are expanded to polynomials, so that common terms cancel: `s * n + n` minus `s * n` is `n` for any `s`.
#include "dialect/tile/transforms/TripCount.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace mlir;

namespace kpkg::tile {

namespace {

/// Limits of formulas: longer ones are hard to review, and slow to evaluate for each call.
constexpr size_t kMostSteps = 48, kMostProducts = 16;

/// A sum of products of values. The key lists the numbers of the values in increasing order; the mapped value is the
/// coefficient.
using Polynomial = std::map<SmallVector<unsigned, 4>, int64_t>;

class Counter {
public:
  explicit Counter(ExtentOf extentOf) : extentOf(extentOf) {}

  std::optional<TripCount> trips(Value low, Value high, Value step) {
    std::optional<TripCount> span = spanOf(low, high, step);
    if (!span)
      return std::nullopt;
    TripCount steps = std::move(*span);
    if (matchPattern(step, m_One()))
      return steps;
    if (!add(steps, step))
      return std::nullopt;
    steps.push_back({TripCountStep::Kind::CeilDivide});
    return steps;
  }

  std::optional<TripCount> formula(Value number) { return stepsOf(polynomialOf(number)); }

private:
  std::optional<TripCount> spanOf(Value low, Value high, Value step) {
    auto block = low.getDefiningOp<BlockIdOp>();
    auto blocks = step.getDefiningOp<GridDimOp>();
    if (block && blocks && block.getAxis() == blocks.getAxis())
      return stepsOf(polynomialOf(high));
    Polynomial from = polynomialOf(low);
    if (auto steps = stepsOf(difference(polynomialOf(high), from)))
      return steps;
    if (stepsOf(from))
      return std::nullopt;
    // Takes the first operand of the minimum that has the same origin.
    SmallVector<Value> ends = {high};
    while (!ends.empty()) {
      Value end = ends.pop_back_val();
      if (auto least = end.getDefiningOp<arith::MinSIOp>()) {
        ends.append({least.getRhs(), least.getLhs()});
        continue;
      }
      if (auto steps = stepsOf(difference(polynomialOf(end), from)))
        return steps;
    }
    return std::nullopt;
  }

  static void add(Polynomial &sum, const SmallVector<unsigned, 4> &product, int64_t coefficient) {
    int64_t &entry = sum[product];
    if (llvm::AddOverflow(entry, coefficient, entry) || entry == 0)
      sum.erase(product);
  }
  static Polynomial difference(Polynomial sum, const Polynomial &less) {
    for (const auto &[product, coefficient] : less)
      add(sum, product, -coefficient);
    return sum;
  }

  Polynomial polynomialOf(Value value, unsigned depth = 0) {
    constexpr unsigned maxDepth = 16;
    if (std::optional<int64_t> constant = getConstantIntValue(value))
      return *constant ? Polynomial{{{}, *constant}} : Polynomial();
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<arith::IndexCastOp, arith::ExtSIOp>(op))
      return polynomialOf(op->getOperand(0), depth);
    if (isa_and_nonnull<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) && depth < maxDepth) {
      Polynomial left = polynomialOf(op->getOperand(0), depth + 1), right = polynomialOf(op->getOperand(1), depth + 1),
                 result;
      if (left.size() * right.size() > kMostProducts)
        return {{{numberOf(value)}, 1}};
      if (isa<arith::SubIOp>(op))
        return difference(left, right);
      if (isa<arith::AddIOp>(op)) {
        for (const auto &[product, coefficient] : right)
          add(left, product, coefficient);
        return left;
      }
      for (const auto &[product, coefficient] : left)
        for (const auto &[other, factor] : right) {
          SmallVector<unsigned, 4> both(product);
          both.append(other);
          llvm::sort(both);
          int64_t scaled;
          if (llvm::MulOverflow(coefficient, factor, scaled))
            return {{{numberOf(value)}, 1}};
          add(result, both, scaled);
        }
      return result;
    }
    return {{{numberOf(value)}, 1}};
  }

  unsigned numberOf(Value value) {
    if (auto *found = llvm::find(values, value); found != values.end())
      return found - values.begin();
    values.push_back(value);
    return values.size() - 1;
  }

  std::optional<TripCount> stepsOf(const Polynomial &sum) {
    TripCount steps;
    return add(steps, sum) ? std::optional(std::move(steps)) : std::nullopt;
  }

  /// Appends steps that push the sum. Returns false when a value is unknown, or the program becomes too long.
  bool add(TripCount &steps, const Polynomial &sum) {
    bool isFirst = true;
    auto addProduct = [&](const SmallVector<unsigned, 4> &product, int64_t coefficient) {
      for (auto [i, number] : llvm::enumerate(product)) {
        bool isCeil = i == 0 && coefficient < 0 && isDivisionOfNegative(values[number]);
        if (isCeil ? !addCeilDivision(steps, values[number]) : !addValue(steps, values[number]))
          return false;
        coefficient = isCeil ? -coefficient : coefficient;
        if (i != 0)
          steps.push_back({TripCountStep::Kind::Multiply});
      }
      if (coefficient != 1 || product.empty())
        steps.push_back({TripCountStep::Kind::Constant, coefficient});
      if (coefficient != 1 && !product.empty())
        steps.push_back({TripCountStep::Kind::Multiply});
      if (!isFirst)
        steps.push_back({TripCountStep::Kind::Add});
      isFirst = false;
      return true;
    };
    for (const auto &[product, coefficient] : sum)
      if (!product.empty() && !addProduct(product, coefficient))
        return false;
    auto constant = sum.find({});
    if (isFirst || constant != sum.end()) // Last, as people write it.
      addProduct({}, constant == sum.end() ? 0 : constant->second);
    return steps.size() <= kMostSteps;
  }
  bool add(TripCount &steps, Value value) { return steps.size() <= kMostSteps && add(steps, polynomialOf(value)); }

  /// Returns the dividend of `value`, which is divided any number of times, rounding down. Appends the divisors, the
  /// last one first.
  static Value dividendOf(Value value, SmallVectorImpl<Value> &divisors) {
    while (auto division = value.getDefiningOp<arith::FloorDivSIOp>()) {
      divisors.push_back(division.getRhs());
      value = division.getLhs();
    }
    return value;
  }

  /// Matches -n // d, whose negative is the prelude's ceildiv.
  bool isDivisionOfNegative(Value value) {
    SmallVector<Value> divisors;
    Polynomial dividend = polynomialOf(dividendOf(value, divisors));
    return !divisors.empty() && llvm::all_of(dividend, [](const auto &term) { return term.second < 0; });
  }

  bool addCeilDivision(TripCount &steps, Value value) {
    SmallVector<Value> divisors;
    if (!add(steps, difference({}, polynomialOf(dividendOf(value, divisors)))))
      return false;
    for (Value divisor : llvm::reverse(divisors)) {
      if (!add(steps, divisor))
        return false;
      steps.push_back({TripCountStep::Kind::CeilDivide});
    }
    return true;
  }

  bool addValue(TripCount &steps, Value value) {
    if (steps.size() > kMostSteps)
      return false;
    if (auto extent = extentOf(value)) {
      steps.push_back({TripCountStep::Kind::Extent, extent->first, extent->second});
      return true;
    }
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (!isa<KernelOp>(argument.getOwner()->getParentOp()) || !argument.getType().isIntOrIndex() ||
          argument.getType().isInteger(1))
        return false;
      steps.push_back({TripCountStep::Kind::Value, argument.getArgNumber()});
      return true;
    }
    if (auto blocks = value.getDefiningOp<GridDimOp>()) {
      steps.push_back({TripCountStep::Kind::Grid, int64_t(blocks.getAxis())});
      return true;
    }
    Operation *op = value.getDefiningOp();
    if (auto select = dyn_cast<arith::SelectOp>(op))
      return addLarger(steps, select.getTrueValue(), select.getFalseValue());
    if (auto branches = dyn_cast<scf::IfOp>(op)) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      return addLarger(steps, branches.thenYield().getOperand(number), branches.elseYield().getOperand(number));
    }
    std::optional<TripCountStep::Kind> kind =
        isa<arith::FloorDivSIOp>(op)  ? std::optional(TripCountStep::Kind::FloorDivide)
        : isa<arith::CeilDivSIOp>(op) ? std::optional(TripCountStep::Kind::CeilDivide)
        : isa<arith::MinSIOp>(op)     ? std::optional(TripCountStep::Kind::Min)
        : isa<arith::MaxSIOp>(op)     ? std::optional(TripCountStep::Kind::Max)
                                      : std::nullopt;
    if (!kind || !add(steps, op->getOperand(0)) || !add(steps, op->getOperand(1)))
      return false;
    steps.push_back({*kind});
    return true;
  }

  /// Appends the larger operand. An operand of 0 is ignored, because branches count as taken.
  bool addLarger(TripCount &steps, Value one, Value other) {
    if (matchPattern(other, m_Zero()) || matchPattern(one, m_Zero()))
      return add(steps, matchPattern(one, m_Zero()) ? other : one);
    if (!add(steps, one) || !add(steps, other))
      return false;
    steps.push_back({TripCountStep::Kind::Max});
    return true;
  }

  ExtentOf extentOf;
  SmallVector<Value> values;
};

} // namespace

std::optional<TripCount> countTrips(Value low, Value high, Value step, ExtentOf extentOf) {
  return Counter(extentOf).trips(low, high, step);
}

std::optional<TripCount> formulaOf(Value number, ExtentOf extentOf) { return Counter(extentOf).formula(number); }

std::string toString(const TripCount &steps) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      steps, stream,
      [&](const TripCountStep &step) {
        switch (step.kind) {
        case TripCountStep::Kind::Constant:
          stream << step.number;
          break;
        case TripCountStep::Kind::Extent:
          stream << "dim(" << step.number << ',' << step.dimension << ')';
          break;
        case TripCountStep::Kind::Value:
          stream << "value(" << step.number << ')';
          break;
        case TripCountStep::Kind::Grid:
          stream << "grid(" << step.number << ')';
          break;
        case TripCountStep::Kind::Add:
          stream << '+';
          break;
        case TripCountStep::Kind::Multiply:
          stream << '*';
          break;
        case TripCountStep::Kind::FloorDivide:
          stream << "//";
          break;
        case TripCountStep::Kind::CeilDivide:
          stream << "ceildiv";
          break;
        case TripCountStep::Kind::Min:
          stream << "min";
          break;
        case TripCountStep::Kind::Max:
          stream << "max";
          break;
        }
      },
      " ");
  return text;
}

} // namespace kpkg::tile
