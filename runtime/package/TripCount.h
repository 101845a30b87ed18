// How often a loop of a kernel runs, as a factor of a cost formula says it: a computation over what a launch knows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_TRIPCOUNT_H
#define KPKG_PACKAGE_TRIPCOUNT_H

#include "runtime/plan/Evaluate.h"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace kpkg::package {

struct Kernel;

/// A step in reverse Polish notation; see docs/package-format.md.
struct TripCountStep {
  enum class Kind : uint8_t { Constant, Extent, Value, Grid, Add, Multiply, FloorDivide, CeilDivide, Min, Max };
  Kind kind = Kind::Constant;
  int64_t number = 0; ///< the constant, the argument or the axis
  int32_t dim = 0;
};

/// The steps that a factor `["count", ...]` of a formula of `kernel` lists; empty with `why` where they are none.
std::vector<TripCountStep> readTripCount(const nlohmann::json &factor, const Kernel &kernel, std::string &why);

/// What the steps compute, at least 0; nothing where they ask for a number that is not part of the call's signature. A
/// division by what is not positive gives 0.
std::optional<double> evaluate(const std::vector<TripCountStep> &steps, const plan::LaunchStep &launch);

} // namespace kpkg::package
#endif
