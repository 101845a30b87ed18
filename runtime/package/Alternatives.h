// Chooses among instances with equal results by measured times, else by the cost model's estimates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_ALTERNATIVES_H
#define KPKG_PACKAGE_ALTERNATIVES_H

#include "runtime/device/Device.h"
#include "runtime/package/CostModel.h"
#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kpkg::package {

/// How one of the alternatives was chosen.
struct AlternativeChoice {
  enum class By : uint8_t {
    Table,           ///< a row of the tuning table for these extents
    Neighbour,       ///< a row for other extents of the same classes
    Model,           ///< the shortest estimate; the first of equal ones
    Order,           ///< the first, because there are no estimates
    BatchInvariance, ///< the first, because extents must not decide
  };
  By by = By::Order;
  /// All alternatives in the manifest's order, with estimates if each of them has one.
  std::vector<const Instance *> instances;
  std::vector<TimeEstimate> estimates;
  size_t chosen = 0;
  std::string device; ///< name in the tuning table
};

/// Chooses one of `alternatives`: at least two, in the manifest's order. The choice is deterministic.
AlternativeChoice chooseAlternative(const Tables &tables, std::vector<const Instance *> alternatives,
                                    const plan::LaunchStep &launch, const device::Device &device);

/// Chooses the first of `alternatives`: at least two, in the manifest's order.
AlternativeChoice firstAlternative(std::vector<const Instance *> alternatives, const device::Device &device);

/// Returns the verdict on alternative `index` for people; "chosen by ..." for the chosen one.
std::string verdictOn(const AlternativeChoice &choice, size_t index);

} // namespace kpkg::package
#endif
