// Rewrites dots of 8-bit elements to dots of wider elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::lower::cpu {

/// Widens the dots of `kernel`. Afterwards all dot operands are f16, bf16, f32 or f64, and results are unchanged.
void widenDots(tile::KernelOp kernel);

} // namespace kpkg::lower::cpu
