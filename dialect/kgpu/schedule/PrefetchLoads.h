// Loading what the next iteration of a loop needs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Moves loads in loops one iteration ahead where their addresses follow from the loop's counter; those that are for
/// rings stay where the kernel has rings. Whether there were any.
bool prefetchLoads(tile::KernelOp kernel, bool hasRings = false);
} // namespace kpkg::kgpu
