// Evaluates trip counts of kernel loops, which are factors of cost formulas, from the numbers of a launch.
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

/// Reads the steps of a factor `["count", ...]` of a formula of `kernel`. After an error the result is empty, and `why`
/// is set.
std::vector<TripCountStep> readTripCount(const nlohmann::json &factor, const Kernel &kernel, std::string &why);

/// Returns the result of the steps, at least 0; nothing if they use a number outside the call's signature. A division
/// by a number that is not positive gives 0.
std::optional<double> evaluate(const std::vector<TripCountStep> &steps, const plan::LaunchStep &launch);

} // namespace kpkg::package
#endif
