// Moving loads up to the first one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Moves loads of the kernel's outermost block up to its first load, as far as what they need allows. Whether one of
/// them has passed a place where threads wait for each other.
bool hoistLoads(tile::KernelOp kernel);
} // namespace kpkg::kgpu
