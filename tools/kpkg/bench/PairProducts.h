// Measures how fast a CPU multiplies pairs of bfloat16 numbers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/bench/DeviceLimits.h"
#include <optional>

namespace kpkg::command::bench {

/// Returns the rate of instructions that add products of bfloat16 pairs to float32 sums, in registers, on all threads
/// of the runtime. Nothing if this CPU's best target has no such instruction.
std::optional<Limit> measurePairProducts();

} // namespace kpkg::command::bench
