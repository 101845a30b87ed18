// Rewrites dots with a 2:4 sparse left operand to dense dots.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {
/// Densifies the kernel, which has no layouts yet. Afterwards no dot has positions.
void densifyDots(KernelOp kernel);
} // namespace kpkg::tile
