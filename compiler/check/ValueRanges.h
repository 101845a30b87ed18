// Declares facts about host values on the current path: value numbers, ranges of integers, truth of conditions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"

#include <bitset>
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

/// Two nodes with equal value numbers have equal values. Variables get new numbers where control flow joins.
class ValueRanges {
public:
  using Number = unsigned;

  /// Assigns a value number to a newly emitted node.
  void record(const hir::Node *node);
  void assign(const hir::Local *local, const hir::Node *value);
  /// Declares that the variable may have any value from here on (loops, joins).
  void forget(const hir::Local *local);

  /// Assumes, from here until restored, that the condition is `truth`.
  void assume(const hir::Node *condition, bool truth);
  /// Declares that `index` iterates over range(begin, end).
  void bound(const hir::Node *index, const hir::Node *begin, const hir::Node *end);
  Interval range(const hir::Node *node) const;
  /// Returns all values that an Int can have, in ascending order; nothing if there are too many for a list.
  std::optional<std::vector<int64_t>> choices(const hir::Node *node) const;
  /// Returns whether both values are certainly equal.
  bool sameValue(const hir::Node *a, const hir::Node *b) const {
    return numberOf(a) != 0 && numberOf(a) == numberOf(b);
  }
  std::optional<bool> truth(const hir::Node *node) const;
  /// A set of dtypes, by their numbers.
  using DTypes = std::bitset<64>;
  /// Returns whether a DType can have that value.
  bool mayBe(const hir::Node *node, DType value) const { return dtypesOf(numberOf(node))[size_t(value)]; }
  /// Returns whether two DTypes can have those values on the same path.
  bool mayBe(const hir::Node *node, DType value, const hir::Node *other, DType otherValue) const;
  /// Returns whether the facts contradict each other, so that this path is never taken.
  bool isUnreachable() const { return unreachable; }
  void setUnreachable() { unreachable = true; }
  /// Returns whether several returns of a function lead here. Facts that connect numbers of several values are lost
  /// there, so that not each value that seems possible is.
  bool isPartial() const { return truths.count(severalReturns) != 0; }

  /// Facts and numbers of variables at one point of the program.
  struct State {
    std::map<Number, Interval> ranges;
    /// The only values of a number whose range has gaps, in ascending order, including both ends of the range.
    std::map<Number, std::vector<int64_t>> gapped;
    std::map<Number, bool> truths;
    std::map<const hir::Local *, Number> variables;
    /// The values that a DType can have, where some are ruled out.
    std::map<Number, DTypes> dtypes;
    bool unreachable = false;
  };
  State save() const { return {ranges, gapped, truths, variables, knownDTypes, unreachable}; }
  void restore(State state);
  /// Joins two paths. It keeps facts that hold on both, and gives fresh numbers to variables that differ. Paths that
  /// never reach the join are ignored.
  void join(const State &a, bool aArrives, const State &b, bool bArrives);
  /// Joins paths, if there are any. Those whose facts contradict each other are ignored.
  void joinAll(std::vector<State> paths);

private:
  /// Its truth is the fact that isPartial() tells. No node has this number.
  static constexpr Number severalReturns = 0;

  Number numberOf(const hir::Node *node) const;
  /// Returns the text by which nodes with equal operands have one number.
  static std::string keyOf(hir::Kind kind, const std::vector<Number> &operands);
  const hir::Node *dtypeSource(const hir::Node *tensor) const;
  using Ranges = std::unordered_map<Number, Interval>;
  Interval rangeOf(Number number, unsigned depth) const;
  /// `found` caches the results of this query. Otherwise `x = x + x` would query each earlier x twice.
  Interval rangeOf(Number number, unsigned depth, Ranges &found) const;
  Interval rangeOf(const hir::Node *node, unsigned depth, Ranges &found) const;
  std::optional<std::vector<int64_t>> choicesOf(Number number, unsigned depth) const;
  /// Returns the values that follow from the operands of the node that defines the number.
  std::optional<std::vector<int64_t>> computedChoices(const hir::Node &node, unsigned depth) const;
  /// Returns the number of the dtype of the tensor with that number.
  Number dtypeNumber(Number tensor);
  DTypes dtypesOf(Number number) const { return dtypesOf(number, knownDTypes); }
  DTypes dtypesOf(Number number, const std::map<Number, DTypes> &known) const;
  void setDTypes(Number number, DTypes values);
  /// Returns whether two DTypes are equal, as far as it follows from tests and from what each can be.
  std::optional<bool> dtypeTruth(const hir::Node *lhs, const hir::Node *rhs) const;
  /// Returns whether one of the paths that gave `number` its value allows both values.
  bool agree(Number number, DType value, Number other, DType otherValue) const;
  void assumeDTypes(const hir::Node *lhs, const hir::Node *rhs, bool truth);
  /// Declares what a variable's new number can be after a join, if it is a DType or a tensor. Its number was `one` in
  /// `a`, and `other` in `b`.
  void joinDTypes(const hir::Local *local, const State &a, Number one, const State &b, Number other, State &both);
  void narrow(Number number, Interval to);
  void exclude(Number number, int64_t value);
  void setChoices(Number number, std::vector<int64_t> values);
  /// Assumes from here on that one of the two has this truth.
  void assumeEither(const hir::Node *one, const hir::Node *other, bool truth);
  void assumeCompare(hir::Kind kind, const hir::Node *lhs, const hir::Node *rhs, bool truth);

  std::unordered_map<const hir::Node *, Number> numbers;
  std::map<std::string, Number> byKey;
  std::vector<const hir::Node *> definition; // by number; null for a fresh number
  std::map<Number, Interval> ranges;
  std::map<Number, std::vector<int64_t>> gapped;
  std::map<Number, bool> truths;
  std::map<const hir::Local *, Number> variables;
  std::map<Number, DTypes> knownDTypes;
  /// A path to a join: the number that a DType has on it, and what is known there.
  struct Path {
    Number value;
    std::map<Number, DTypes> known;
  };
  std::map<Number, std::vector<Path>> paths; // by number of a DType that differs between paths
  bool unreachable = false;
};

} // namespace kpkg::compiler
