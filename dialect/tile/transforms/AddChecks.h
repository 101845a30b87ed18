// Adds checks to kernels: of indices against views, and of stored values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

struct Checks {
  bool bounds = false; ///< indices of single elements, gathers, scatters, atomic updates and parts lie in their view
  bool nan = false;    ///< stored and added floats are numbers
};

/// Adds checks before the accesses of a verified kernel without layouts. Elements whose mask is false, or that a store
/// leaves out, are not checked. Messages name arguments by `names`, or by their numbers.
void addChecks(KernelOp kernel, Checks checks, llvm::ArrayRef<std::string> names = {});

} // namespace kpkg::tile
