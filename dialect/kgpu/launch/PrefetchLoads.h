// Issues loads of a loop one iteration ahead.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/launch/HoistLoads.h"

namespace kpkg::kgpu {
/// Moves loads one iteration ahead if their addresses depend only on the loop's counter. If the kernel has rings, loads
/// that suit a ring are not moved. Returns whether any load was moved. `report` receives the loads of loops.
bool prefetchLoads(
    tile::KernelOp kernel, bool hasRings = false, LoadReport report = [](tile::LoadOp, const WhyNot &) {});
} // namespace kpkg::kgpu
