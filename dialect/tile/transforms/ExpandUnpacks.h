// Rewrites unpacked words to shifts and masks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {
/// Expands the unpacks of a kernel, which has no layouts yet. Afterwards there are none.
void expandUnpacks(KernelOp kernel);
} // namespace kpkg::tile
