// Evaluates trip counts of kernel loops, which are factors of cost formulas, from the numbers of a launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_TRIPCOUNT_H
#define KPKG_PACKAGE_TRIPCOUNT_H

#include "runtime/manifest/Records.h"
#include "runtime/plan/Evaluate.h"

#include <optional>
#include <string>
#include <vector>

namespace kpkg::package {

using manifest::TripCountStep;
struct Kernel;

/// Returns why the steps of a formula of `kernel` cannot be evaluated; empty if they can.
std::string checkTripCount(const std::vector<TripCountStep> &steps, const Kernel &kernel);

/// Returns the result of the steps, at least 0; nothing if they use a number outside the call's signature. A division
/// by a number that is not positive gives 0.
std::optional<double> evaluate(const std::vector<TripCountStep> &steps, const plan::LaunchStep &launch);

} // namespace kpkg::package
#endif
