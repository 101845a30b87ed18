// Emits reductions and scans bit by bit: each coordinate bit of the axis is a register bit or a lane bit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A scan keeps two values for every register. One is the inclusive prefix inside its block of 2^i consecutive elements,
// the other is the block's total. Coordinate bit i joins two blocks: the lower half's total is combined into the
// prefixes of the upper half. Register bits join registers, and lane bits take one shuffle for each distinct total. The
// repeats follow in order.
#include "dialect/lower/nvvm/AlongAxis.h"
#include "dialect/layout/Algebra.h"
#include "dialect/lower/nvvm/MoveRegisters.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <vector>

namespace kpkg::lower::nvvm {
using namespace mlir;
using layout::Layout;
using layout::Part;
using Values = SmallVector<Value, 2>;

namespace {
/// The register or lane bit that moves a coordinate bit of the axis.
struct Owner {
  Part part;
  unsigned bit;
};

/// Returns the owners in ascending order of the coordinate bits.
SmallVector<Owner> ownersAlong(const Layout &layout, unsigned axis) {
  SmallVector<Owner> owners(layout::bitsOf(layout.atom()[axis]));
  for (Part part : {Part::Register, Part::Lane})
    for (auto [bit, basis] : llvm::enumerate(layout.bases(part)))
      if (basis[axis] != 0)
        owners[llvm::countr_zero(static_cast<uint32_t>(basis[axis]))] = {part, static_cast<unsigned>(bit)};
  return owners;
}

Values shuffleAll(ImplicitLocOpBuilder &builder, ArrayRef<Value> values, unsigned mask) {
  Values result;
  for (Value value : values)
    result.push_back(shuffleElementXor(builder, value, mask));
  return result;
}

Values selectAll(ImplicitLocOpBuilder &builder, Value condition, ArrayRef<Value> yes, ArrayRef<Value> no) {
  Values result;
  for (auto [left, right] : llvm::zip_equal(yes, no))
    result.push_back(arith::SelectOp::create(builder, condition, left, right));
  return result;
}

/// Groups the inputs by register: one tuple for each register.
SmallVector<Values> tuplesOf(const Registers &inputs) {
  SmallVector<Values> tuples(inputs.front().size());
  for (const auto &input : inputs)
    for (auto [tuple, value] : llvm::zip_equal(tuples, input))
      tuple.push_back(value);
  return tuples;
}

Registers registersOf(ArrayRef<Values> tuples, size_t inputCount) {
  Registers result(inputCount);
  for (const Values &tuple : tuples)
    for (auto [list, value] : llvm::zip_equal(result, tuple))
      list.push_back(value);
  return result;
}

/// Returns all values of two tuples as a key. The first values alone are ambiguous: every register of a splat holds the
/// same value.
std::vector<void *> keyOf(ArrayRef<Value> left, ArrayRef<Value> right = {}) {
  std::vector<void *> key;
  for (Value value : left)
    key.push_back(value.getAsOpaquePointer());
  for (Value value : right)
    key.push_back(value.getAsOpaquePointer());
  return key;
}
} // namespace

std::string whyNotAlong(const Layout &layout, unsigned axis) {
  for (Part part : layout::parts)
    for (const Layout::Basis &basis : layout.bases(part)) {
      if (basis[axis] == 0)
        continue;
      if (part == Part::Warp || part == Part::Block)
        return llvm::formatv("the elements along dimension {0} of layout \"{1}\" lie in several {2}", axis,
                             layout.str(), part == Part::Warp ? "warps" : "blocks");
      if (llvm::count_if(basis, [](int32_t value) { return value != 0; }) != 1 || !llvm::isPowerOf2_32(basis[axis]))
        return llvm::formatv("a bit of layout \"{0}\" moves along dimension {1} and more", layout.str(), axis);
    }
  return {};
}

Registers reduceAlong(ImplicitLocOpBuilder &builder, const Layout &layout, unsigned axis, const Registers &inputs,
                      Combine combine) {
  Layout sliced = llvm::cantFail(layout::slice(layout, axis));
  SmallVector<Values> tuples = tuplesOf(inputs);
  // The registers of thread 0 that are combined into each register of the slice, in order of their coordinate.
  SmallVector<std::map<int64_t, unsigned>> groups(sliced.registers());
  for (unsigned reg = 0; reg < tuples.size(); ++reg) {
    layout::Coordinates where = layout.coordinates({reg, 0, 0, 0});
    int64_t along = std::exchange(where[axis], 0);
    groups[*sliced.registerOf(where, 0)][along] = reg;
  }
  SmallVector<Values> results;
  for (const auto &group : groups) {
    SmallVector<Values> level;
    for (auto [along, reg] : group)
      level.push_back(tuples[reg]);
    // A few chains, so that products can be fused into FMAs, then a tree.
    constexpr size_t chains = 4;
    for (size_t i = chains; i < level.size(); ++i) {
      SmallVector<Value> joined = combine(level[i % chains], level[i]);
      level[i % chains].assign(joined.begin(), joined.end());
    }
    level.resize(std::min(level.size(), chains));
    while (level.size() > 1) {
      SmallVector<Values> next;
      for (size_t i = 0; i + 1 < level.size(); i += 2) {
        SmallVector<Value> joined = combine(level[i], level[i + 1]);
        next.emplace_back(joined.begin(), joined.end());
      }
      if (level.size() % 2)
        next.push_back(level.back());
      level = std::move(next);
    }
    Values tuple = level.front();
    for (Owner owner : ownersAlong(layout, axis))
      if (owner.part == Part::Lane) {
        SmallVector<Value> joined = combine(tuple, shuffleAll(builder, tuple, 1u << owner.bit));
        tuple.assign(joined.begin(), joined.end());
      }
    results.push_back(tuple);
  }
  return registersOf(results, inputs.size());
}

namespace {
/// The state of a scan: the prefix of each register inside its block of consecutive elements, and the block's total.
class Scan {
public:
  Scan(ImplicitLocOpBuilder &builder, const Registers &inputs, Combine combine, ScanKind kind)
      : prefixes(tuplesOf(inputs)), totals(prefixes), builder(builder), combine(combine),
        isEmpty(prefixes.size(), kind == ScanKind::Exclusive) {}

  /// Joins blocks of registers that differ in the bits of `mask`.
  void joinRegisters(unsigned mask) {
    SmallVector<Values> joined = totals;
    // Registers of one block share their totals: each distinct pair is joined once.
    std::map<std::vector<void *>, Values> known;
    for (unsigned reg = 0; reg < prefixes.size(); ++reg) {
      unsigned low = reg & ~mask, high = reg | mask;
      Values &total = known[keyOf(totals[low], totals[high])];
      if (total.empty())
        total = join(totals[low], totals[high]);
      joined[reg] = total;
      if (reg == high)
        putBefore(reg, totals[low]);
    }
    totals = std::move(joined);
  }

  /// Joins blocks of lanes that differ in the bits of `mask`. `upper` is true in lanes that have all these bits set.
  void joinLanes(unsigned mask, Value upper) {
    std::map<std::vector<void *>, std::pair<Values, Values>> known;
    for (unsigned reg = 0; reg < prefixes.size(); ++reg) {
      auto &[other, total] = known[keyOf(totals[reg])];
      if (other.empty()) {
        other = shuffleAll(builder, totals[reg], mask);
        total = join(selectAll(builder, upper, other, totals[reg]), selectAll(builder, upper, totals[reg], other));
      }
      bool wasEmpty = isEmpty[reg];
      Values before = prefixes[reg];
      putBefore(reg, other);
      if (!wasEmpty || lanesAreFirst)
        prefixes[reg] = selectAll(builder, upper, prefixes[reg], before);
      isEmpty[reg] = wasEmpty;
      totals[reg] = total;
    }
    Value isLower = arith::XOrIOp::create(builder, upper, arith::ConstantIntOp::create(builder, 1, 1));
    lanesAreFirst = lanesAreFirst ? arith::AndIOp::create(builder, lanesAreFirst, isLower).getResult() : isLower;
  }

  /// Combines the totals of the previous repeats into each repeat. Registers ascend, so the previous repeat is
  /// complete.
  void joinRepeats(int64_t repeats, unsigned stride) {
    std::map<std::vector<void *>, Values> known;
    for (unsigned reg = 0; reg < prefixes.size(); ++reg) {
      if (reg / stride % repeats == 0)
        continue;
      const Values &before = totals[reg - stride];
      putBefore(reg, before);
      Values &total = known[keyOf(before, totals[reg])];
      if (total.empty())
        total = join(before, totals[reg]);
      totals[reg] = total;
    }
  }

  SmallVector<Values> prefixes, totals;

private:
  Values join(ArrayRef<Value> left, ArrayRef<Value> right) {
    SmallVector<Value> joined = combine(left, right);
    return Values(joined.begin(), joined.end());
  }

  void putBefore(unsigned reg, const Values &total) {
    if (!isEmpty[reg])
      prefixes[reg] = join(total, prefixes[reg]);
    else if (lanesAreFirst) // In the first lanes this register has no predecessor yet.
      prefixes[reg] = selectAll(builder, lanesAreFirst, total, join(total, prefixes[reg]));
    else
      prefixes[reg] = total;
    isEmpty[reg] = false;
  }

  ImplicitLocOpBuilder &builder;
  Combine combine;
  /// For each register: no element precedes it, except in other lanes.
  SmallVector<bool> isEmpty;
  Value lanesAreFirst; ///< i1: no other lane holds a predecessor; null means that no lanes were joined.
};

/// Returns the totals of the last repeat, as registers of the slice.
SmallVector<Values> totalsOf(const Scan &scan, const Layout &layout, unsigned axis) {
  Layout sliced = llvm::cantFail(layout::slice(layout, axis));
  SmallVector<Values> result(sliced.registers());
  SmallVector<int64_t> last(sliced.registers(), -1);
  for (unsigned reg = 0; reg < scan.totals.size(); ++reg) {
    layout::Coordinates where = layout.coordinates({reg, 0, 0, 0});
    int64_t along = std::exchange(where[axis], 0);
    unsigned to = *sliced.registerOf(where, 0);
    if (along > last[to]) {
      result[to] = scan.totals[reg];
      last[to] = along;
    }
  }
  return result;
}
} // namespace

Scanned scanAlong(ImplicitLocOpBuilder &builder, const Layout &layout, unsigned axis, const Registers &inputs,
                  const ThreadBits &thread, Combine combine, ScanKind kind) {
  Scan scan(builder, inputs, combine, kind);
  for (Owner owner : ownersAlong(layout, axis)) {
    unsigned mask = 1u << owner.bit;
    if (owner.part == Part::Register)
      scan.joinRegisters(mask);
    else
      scan.joinLanes(mask, parityOf(builder, thread, mask, layout.bits(Part::Lane), layout.bits(Part::Warp)));
  }
  scan.joinRepeats(layout.repeats()[axis], layout.repeatStride(axis));
  return {registersOf(scan.prefixes, inputs.size()), registersOf(totalsOf(scan, layout, axis), inputs.size())};
}
} // namespace kpkg::lower::nvvm
