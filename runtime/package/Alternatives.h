// Which of several instances with equal results runs a launch: what was measured, else what the cost model estimates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_ALTERNATIVES_H
#define KPKG_PACKAGE_ALTERNATIVES_H

#include "runtime/package/CostModel.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kpkg::package {

struct ExecutionDevice;

/// How one of the alternatives was chosen.
struct AlternativeChoice {
  enum class By : uint8_t {
    Table,     ///< a row of the tuning table for these extents
    Neighbour, ///< one for extents of the same classes
    Model,     ///< the shortest estimate; of equal ones the first
    Order,     ///< there are no estimates: the first
  };
  By by = By::Order;
  /// All of them, in the manifest's order, with estimates where every one has one.
  std::vector<const Instance *> instances;
  std::vector<TimeEstimate> estimates;
  size_t chosen = 0;
  std::string device; ///< as the tuning table calls it
};

/// As the tuning table calls a device: "NVIDIA H200"; of the host its number of threads, "16 threads".
std::string tuningName(const ExecutionDevice &device);

/// `alternatives`: at least two, in the manifest's order. The same arguments give the same choice.
AlternativeChoice chooseAlternative(const Tables &tables, std::vector<const Instance *> alternatives,
                                    const plan::LaunchStep &launch, const ExecutionDevice &device);

/// What became of alternative `index`, for people; "chosen by ..." for the chosen one.
std::string verdictOn(const AlternativeChoice &choice, size_t index);

} // namespace kpkg::package
#endif
