// Products with two of every four elements of the left factor, as products of all of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {
/// Afterwards no product of the kernel, which has no layouts yet, has positions.
void densifyDots(KernelOp kernel);
} // namespace kpkg::tile
