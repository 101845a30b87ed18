// Evaluates an instance's cost formulas: operations and bytes of a launch, and an estimate of its time for choosing
// among alternatives.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_COSTMODEL_H
#define KPKG_PACKAGE_COSTMODEL_H

#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <optional>

namespace kpkg::package {

/// The cost of the whole launch. It is 0 if the instance has no formula, or if the formula uses a number outside the
/// call's signature.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
Cost estimateCost(const Instance &instance, const plan::LaunchStep &launch);
/// Returns the number of tiles of a persistent kernel's launch. Returns nothing if the instance does not state it, or
/// if it depends on a number outside the call's signature.
std::optional<double> countTiles(const Instance &instance, const plan::LaunchStep &launch);

/// The time on a machine that computes tiles side by side, one on each processor, until none is left.
struct TimeEstimate {
  /// Tiles that the busiest processor computes one after the other: waves, counting the last one as a whole.
  double rounds = 0;
  double cyclesPerRound = 0;
  double cycles() const { return rounds * cyclesPerRound; }
};

/// Estimates the time from the instance's tile formulas. Returns nothing without formulas, or if they use a number
/// outside the call's signature. Estimates are only comparable for the same launch and device.
///
/// A round takes the maximum of computing a tile and moving its operands. It computes whole tiles, also beyond the
/// edges. Starting and ending a tile comes on top, partly hidden by other resident tiles of the processor. The bytes
/// that shared memory can have in flight limit the rate of operands.
std::optional<TimeEstimate> estimateTime(const Instance &instance, const plan::LaunchStep &launch, int64_t processors);

} // namespace kpkg::package
#endif
