// Compares the places of reads with those of writes before them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two accesses are apart if the bounds of one lie beyond those of the other in some dimension. In a later iteration of
// a loop, its counters have grown by at least one step. Numbers of outer loops are the same, and all others are open.
#include "compiler/check/ReadBack.h"
#include "compiler/check/Places.h"

#include <algorithm>
#include <optional>

namespace kpkg::compiler {

namespace {

/// Updates may follow each other: each of them counts.
bool conflict(Effect first, Effect second) {
  return first == Effect::Write ? second != Effect::Write : first == Effect::Update && second == Effect::Read;
}

class Comparison {
public:
  /// `loop` is the loop of which the second access is in a later iteration; 0 for the same iteration of all loops.
  Comparison(const Places &places, const Access &first, const Access &second, unsigned loop)
      : unknowns(places.unknowns), first(first), second(second), loop(loop) {
    for (unsigned around : first.loops) {
      if (around == loop)
        break;
      outer.insert(around);
    }
  }

  bool areApart() const {
    std::vector<unsigned> coordinates;
    for (unsigned i = 0; i < unknowns.size(); ++i)
      if (unknowns[i].isCoordinate && unknowns[i].loops.count(loop))
        coordinates.push_back(i);
    if (coordinates.empty())
      return areApart({}, 1);
    // Some coordinate of another tile is smaller or larger.
    return std::all_of(coordinates.begin(), coordinates.end(),
                       [&](unsigned coordinate) { return areApart(coordinate, 1) && areApart(coordinate, -1); });
  }

private:
  const std::vector<Unknown> &unknowns;
  const Access &first, &second;
  unsigned loop;
  std::set<unsigned> outer; ///< loops around `loop`

  bool areApart(std::optional<unsigned> coordinate, int64_t direction) const {
    for (size_t dim = 0; dim < first.spans.size(); ++dim)
      for (const Span &one : first.spans[dim])
        for (const Span &other : second.spans[dim])
          if (notNegative(other.low, one.high, coordinate, direction) ||
              notNegative(one.low, other.high, coordinate, direction))
            return true;
    return false;
  }

  /// Returns whether `a >= b`, of which one belongs to the first access and one to the second.
  bool notNegative(const Linear &a, const Linear &b, std::optional<unsigned> coordinate, int64_t direction) const {
    if (loop == 0) {
      Linear difference = sum(a, b, -1);
      return difference.isConstant() && difference.constant >= 0;
    }
    bool isSecond = isOf(second, a);
    int64_t growth = 0;
    for (const Linear *number : {&a, &b})
      for (auto [unknown, factor] : number->factors) {
        if (factorOf(a, unknown) != factorOf(b, unknown))
          return false;
        const Unknown &of = unknowns[unknown];
        bool isSame = std::includes(outer.begin(), outer.end(), of.loops.begin(), of.loops.end());
        if (isSame || number == &b)
          continue;
        bool advances =
            of.loops == std::set<unsigned>{loop} && of.step != 0 && (!of.isCoordinate || coordinate == unknown);
        if (!advances)
          return false;
        int64_t step = of.isCoordinate ? direction : of.step, more = isSecond ? factor * step : -factor * step;
        if (more < 0) // and ever smaller
          return false;
        growth += more;
      }
    return a.constant - b.constant + growth >= 0;
  }

  static int64_t factorOf(const Linear &number, unsigned unknown) {
    auto found = number.factors.find(unknown);
    return found == number.factors.end() ? 0 : found->second;
  }
  static bool isOf(const Access &access, const Linear &number) {
    for (const std::vector<Span> &spans : access.spans)
      for (const Span &span : spans)
        if (&span.low == &number || &span.high == &number)
          return true;
    return false;
  }
};

/// Returns whether the accesses are in two branches of one `if`.
bool areExclusive(const Access &first, const Access &second) {
  return std::any_of(first.branches.begin(), first.branches.end(), [&](const auto &branch) {
    auto other = second.branches.find(branch.first);
    return other != second.branches.end() && other->second != branch.second;
  });
}

bool mayMeet(const Places &places, size_t first, size_t second) {
  const Access &one = places.accesses[first], &other = places.accesses[second];
  if (first < second && !areExclusive(one, other) && !Comparison(places, one, other, 0).areApart())
    return true;
  for (size_t depth = 0; depth < std::min(one.loops.size(), other.loops.size()); ++depth) {
    if (one.loops[depth] != other.loops[depth])
      break;
    if (!Comparison(places, one, other, one.loops[depth]).areApart())
      return true;
  }
  return false;
}

} // namespace

void checkReadBack(const hir::Function &kernel, DiagnosticEngine &diags) {
  Places places = placesOf(kernel);
  for (size_t read = 0; read < places.accesses.size(); ++read) {
    const Access &second = places.accesses[read];
    for (size_t write = 0; write < places.accesses.size(); ++write) {
      const Access &first = places.accesses[write];
      if (first.argument != second.argument || !conflict(effectOf(first.node->kind), effectOf(second.node->kind)) ||
          !mayMeet(places, write, read))
        continue;
      const std::string &name = kernel.parameters[second.argument].name;
      diags.report(diag::ReadsBack, second.node->range, name).note(diag::WrittenHere, first.node->range, name);
      break;
    }
  }
}

} // namespace kpkg::compiler
