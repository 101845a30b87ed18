// Which of several ways to run a call is the fastest, within a time limit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Place.h"
#include <cstdint>
#include <functional>

namespace kpkg::command::tune {

/// One way, and what was measured of it.
struct Contender {
  std::string name;
  /// The cost model's opinion, for ties; less is better. 0: none.
  double estimate = 0;
  Op op;
  /// Median seconds of a call of each visit.
  std::vector<double> visits = {};
  /// Why it cannot run; then it is out.
  std::string failure = {};

  double seconds() const;
};

struct SearchLimits {
  double budget = 10; ///< seconds; one visit of each contender is made in any case
  uint64_t seed = 0;  ///< of the order of visits
};

/// Visits the contenders in rounds, each in another order, and leaves out those that are clearly slower than the best
/// so far; then the best is the one that `pick` names. An error when none runs.
Result<size_t> search(const Place &place, std::vector<Contender> &contenders, const std::vector<Named> &named,
                      const SearchLimits &limits);

/// Of those within two percent of the shortest time, which a repetition of the measurement may order otherwise, the one
/// that the cost model likes best, else the first. `contenders` has at least one that ran.
size_t pick(const std::vector<Contender> &contenders);

} // namespace kpkg::command::tune
