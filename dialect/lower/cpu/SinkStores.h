// Sinks stores behind a branch on a scalar into the arms of the branch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::lower::cpu {

/// Rewrites `kernel` so that no tile is the result of a branch on its way to a store. Such a tile would need memory,
/// and would be computed completely even if the store writes only a part.
void sinkStores(tile::KernelOp kernel);

/// Hoists scalars, and views of parts of arguments, as early in their blocks as their operands permit.
void hoistScalars(tile::KernelOp kernel);

} // namespace kpkg::lower::cpu
