// What is known about host values on the current path: value numbers, ranges of integers, truth of conditions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace kpkg::compiler {

/// A closed range of Int.
struct Interval {
  int64_t low = INT64_MIN;
  int64_t high = INT64_MAX;
  bool isEmpty() const { return low > high; }
};

/// Two nodes with one value number have one value. Variables get a new number where control flow joins.
class ValueRanges {
public:
  using Number = unsigned;

  /// Numbers a node that was just emitted.
  void record(const hir::Node *node);
  void assign(const hir::Local *local, const hir::Node *value);
  /// The variable may have any value from here on (loops, joins).
  void forget(const hir::Local *local);

  /// From here on (until restored) the condition is `truth`.
  void assume(const hir::Node *condition, bool truth);
  /// `index` runs over range(begin, end).
  void bound(const hir::Node *index, const hir::Node *begin, const hir::Node *end);
  Interval range(const hir::Node *node) const;
  /// All values that an Int can have, ascending; nothing where they are more than `maxChoices`.
  std::optional<std::vector<int64_t>> choices(const hir::Node *node) const;
  static constexpr uint64_t maxChoices = 64;
  /// Certainly equal.
  bool sameValue(const hir::Node *a, const hir::Node *b) const {
    return numberOf(a) != 0 && numberOf(a) == numberOf(b);
  }
  std::optional<bool> truth(const hir::Node *node) const;
  /// The facts contradict each other: this path is never taken.
  bool isUnreachable() const { return unreachable; }
  void setUnreachable() { unreachable = true; }

  /// Facts and numbers of variables at one point of the program.
  struct State {
    std::map<Number, Interval> ranges;
    /// The only values of a number, where they have gaps: ascending, from end to end of its range.
    std::map<Number, std::vector<int64_t>> gapped;
    std::map<Number, bool> truths;
    std::map<const hir::Local *, Number> variables;
    bool unreachable = false;
  };
  State save() const { return {ranges, gapped, truths, variables, unreachable}; }
  void restore(State state);
  /// Where two paths join: facts that hold on both, fresh numbers for variables that differ. A path that never arrives
  /// does not count.
  void join(const State &a, bool aArrives, const State &b, bool bArrives);

private:
  Number numberOf(const hir::Node *node) const;
  const hir::Node *dtypeSource(const hir::Node *tensor) const;
  using Ranges = std::unordered_map<Number, Interval>;
  Interval rangeOf(Number number, unsigned depth) const;
  /// `found`: what this query knows already. `x = x + x` would otherwise ask twice for each x before it.
  Interval rangeOf(Number number, unsigned depth, Ranges &found) const;
  Interval rangeOf(const hir::Node *node, unsigned depth, Ranges &found) const;
  std::optional<std::vector<int64_t>> choicesOf(Number number, unsigned depth) const;
  /// What the operands of the node that made the number leave.
  std::optional<std::vector<int64_t>> computedChoices(const hir::Node &node, unsigned depth) const;
  void narrow(Number number, Interval to);
  void exclude(Number number, int64_t value);
  void setChoices(Number number, std::vector<int64_t> values);
  /// From here on one of the two has this truth.
  void assumeEither(const hir::Node *one, const hir::Node *other, bool truth);
  void assumeCompare(hir::Kind kind, const hir::Node *lhs, const hir::Node *rhs, bool truth);

  std::unordered_map<const hir::Node *, Number> numbers;
  std::map<std::string, Number> byKey;
  std::vector<const hir::Node *> definition; // by number; null for a fresh one
  std::map<Number, Interval> ranges;
  std::map<Number, std::vector<int64_t>> gapped;
  std::map<Number, bool> truths;
  std::map<const hir::Local *, Number> variables;
  bool unreachable = false;
};

} // namespace kpkg::compiler
