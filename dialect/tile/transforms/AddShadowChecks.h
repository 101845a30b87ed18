// Adds checks by shadow memory to kernels: of elements that were never written, and of races between blocks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {

/// The checks by shadow memory. Each gives every tensor argument one int32 tensor of the same shape, in this order.
struct ShadowChecks {
  bool uninit = false; ///< elements that are read were written: 1 if so, 0 if not. An absent shadow: all were
  bool race = false;   ///< no block accesses what another one writes: cells, 0 before a launch

  unsigned perTensor() const { return unsigned(uninit) + unsigned(race); }
};

/// Adds shadow arguments and checks to a verified kernel without layouts. The shadows of all view arguments, in their
/// order, follow all other arguments. Elements whose mask is false, or that lie outside their view, are not checked.
/// Neither is the own memory of a block. Messages name arguments by `names`, or by their numbers.
void addShadowChecks(KernelOp kernel, ShadowChecks checks, llvm::ArrayRef<std::string> names = {});

} // namespace kpkg::tile
