// What a launch costs by an instance's formulas: operations and bytes, and an estimate of its time for the choice among
// alternatives.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_COSTMODEL_H
#define KPKG_PACKAGE_COSTMODEL_H

#include "runtime/package/Tables.h"
#include "runtime/plan/Evaluate.h"

#include <optional>

namespace kpkg::package {

/// Of the whole launch; 0 when the instance has no formula, or when the formula asks for a number that the call's
/// signature leaves open.
struct Cost {
  double flops = 0;
  double bytes = 0;
};
Cost estimateCost(const Instance &instance, const plan::LaunchStep &launch);
/// Tiles of a launch of a persistent kernel's instance that says how many there are.
double countTiles(const Instance &instance, const plan::LaunchStep &launch);

/// Time on a machine that computes tiles side by side, one on each processor, until none is left.
struct TimeEstimate {
  /// Tiles that the busiest processor computes one after the other: waves, the last one counting as a whole one.
  double rounds = 0;
  double cyclesPerRound = 0;
  double cycles() const { return rounds * cyclesPerRound; }
};

/// By what the instance says of its tiles; nothing when it says nothing, or asks for a number that the call's signature
/// leaves open. Only for comparison with estimates of the same launch and device. A round takes the longer of computing
/// a tile, all of it even where it reaches beyond the edges, and of moving its operands, and then what it takes to
/// start and end a tile, of which the other tiles that a processor holds hide their part. Operands come no faster than
/// what shared memory can have on its way allows.
std::optional<TimeEstimate> estimateTime(const Instance &instance, const plan::LaunchStep &launch, int64_t processors);

} // namespace kpkg::package
#endif
