// Moves stores behind a branch on a scalar into its arms.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::lower::cpu {

/// Rewrites `kernel` so that no tile leaves a branch on its way to a store. A tile that does needs memory, and is
/// computed to its end whatever the store writes of it.
void sinkStores(tile::KernelOp kernel);

/// Puts scalars, and views of parts of arguments, as early into their blocks as what they are made of allows.
void hoistScalars(tile::KernelOp kernel);

} // namespace kpkg::lower::cpu
