// Rewrites dots of 8-bit elements to dots of wider ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::lower::cpu {

/// Afterwards the operands of every dot in `kernel` are f16, bf16, f32 or f64; results are as before.
void widenDots(tile::KernelOp kernel);

} // namespace kpkg::lower::cpu
