// Chooses the launch of a warp-specialised kernel, with a producer warp and consumer warpgroups.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// The value of @schedule(roles=) for a producer warp, a producer warpgroup and consumer warpgroups.
inline constexpr unsigned kRolesWithProducer = 3;

/// Returns a launch with consumer warpgroups and a producer warp that follows the kernel's hints. Returns nothing if
/// wgmma cannot compute the kernel's products on this chip.
std::optional<Launch> launchWithRoles(tile::KernelOp kernel, const TargetModel &target);

/// Returns the loop over tiles of an output that the kernel consists of; null if it has none or several.
tile::ForTilesOp onlyTilesOf(tile::KernelOp kernel);
} // namespace kpkg::kgpu
