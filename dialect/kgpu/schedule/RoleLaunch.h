// The launch of a kernel in which warpgroups multiply what another one copies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Of @schedule(roles=): one copies, one makes operands, others multiply by them.
inline constexpr unsigned kRolesWithProducer = 3;

/// Warpgroups that compute while another one loads, with what the kernel's hints ask for; nothing where products of the
/// kernel are not of warpgroups on this chip.
std::optional<Launch> launchWithRoles(tile::KernelOp kernel, const TargetModel &target);

/// The loop over tiles of an output that a kernel consists of; null where it has none or several.
tile::ForTilesOp onlyTilesOf(tile::KernelOp kernel);
} // namespace kpkg::kgpu
