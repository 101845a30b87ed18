// Finds the fastest of several ways to run a call, within a time limit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Place.h"
#include <cstdint>
#include <functional>

namespace kpkg::command::tune {

/// One way to run the call, and its measurements.
struct Contender {
  std::string name;
  /// The cost model's estimate, for ties; smaller is better. 0: none.
  double estimate = 0;
  Op op;
  /// Median seconds of a call in each visit.
  std::vector<double> visits = {};
  /// Why it cannot run, which excludes it.
  std::string failure = {};

  double seconds() const;
};

struct SearchLimits {
  double budget = 10; ///< seconds; each contender gets at least one visit
  uint64_t seed = 0;  ///< for the order of visits
};

/// Visits the contenders in rounds, each in another order, and drops those that are clearly slower than the best so
/// far. Returns the result of `pick`, or an error if none runs.
Result<size_t> search(const Place &place, std::vector<Contender> &contenders, const std::vector<Named> &named,
                      const SearchLimits &limits);

/// Returns the best contender: among those within two percent of the shortest time, the one with the best estimate,
/// else the first. Repeated measurements may order these differently. At least one of `contenders` has run.
size_t pick(const std::vector<Contender> &contenders);

} // namespace kpkg::command::tune
