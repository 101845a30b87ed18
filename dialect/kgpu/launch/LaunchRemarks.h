// Emits remarks on a kernel's launch: which units multiply, what the blocks of a cluster share, how tiles are assigned.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Emits remarks on properties that the launch of `kernel` has or lacks. The kernel is at tile level, with a launch and
/// a target.
void remarkOnLaunch(tile::KernelOp kernel);
} // namespace kpkg::kgpu
