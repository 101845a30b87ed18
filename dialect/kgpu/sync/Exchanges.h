// Whether the CTAs of a cluster agree on what they exchange.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// Fails, with an error at the exchange, unless for each one:
///  * all threads of the cluster reach it as often, in the same order: it stands in the kernel's outermost block or in
///  a loop there, whose bounds are
///    the same for the whole cluster, and it counts its uses 0, 1, 2, ...;
///  * its barriers and buffers are its own, have as many slots, and slot `use` mod slots is used;
///  * a slot is not filled again before everyone has read it: in a loop there are two slots, or another exchange;
///  * once barriers are inserted: its barriers are ready for the whole cluster before.
llvm::LogicalResult verifyExchanges(tile::KernelOp kernel);
} // namespace kpkg::kgpu
