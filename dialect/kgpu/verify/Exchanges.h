// Checks that the CTAs of a cluster agree on their exchanges.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Reports an error at each exchange that violates a condition:
///  * All threads of the cluster reach it equally often, in the same order. It stands in the kernel's outermost block,
///    or in a loop there whose bounds are the same for the whole cluster, and it counts its uses 0, 1, 2, ...
///  * No other exchange uses its barriers and buffers. They have equally many slots, and slot `use` mod slots is used.
///  * A slot is not filled again before every warp has read it: a loop has two slots, or another exchange.
///  * After kgpu-insert-barriers: its barriers are initialised for the whole cluster before.
llvm::LogicalResult verifyExchanges(tile::KernelOp kernel);
} // namespace kpkg::kgpu
