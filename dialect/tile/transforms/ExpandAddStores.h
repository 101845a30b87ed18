// Tiles that are added to memory, as updates of elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {
/// Puts a tile.atomic in the place of the op, which has no layouts yet.
void expandAddStore(AddStoreOp op);
} // namespace kpkg::tile
