// Names the optimisations that a field of the launch asks for. Their passes report on what they change, and
// kgpu-configure on what they would change if the launch asked for them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/Remarks.h"

namespace kpkg::kgpu {
inline constexpr Optimisation kEarlyLoads{"kgpu-hoist-loads", "load before the kernel waits"};
inline constexpr Optimisation kPrefetch{"kgpu-prefetch-loads", "load one iteration ahead in registers"};
inline constexpr Optimisation kRingLoads{"kgpu-ring-loads", "loads of later iterations in flight"};
inline constexpr Optimisation kRingCopies{"kgpu-ring-copies", "operand copied ahead"};
} // namespace kpkg::kgpu
