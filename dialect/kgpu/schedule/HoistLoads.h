// Moves loads up to the first load of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Moves loads of the kernel's outermost block up to its first load, as far as their operands allow. Returns whether a
/// load has passed a place where threads wait for each other.
bool hoistLoads(tile::KernelOp kernel);
} // namespace kpkg::kgpu
