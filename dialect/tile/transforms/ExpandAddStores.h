// Expands tile.add_store to atomic updates of elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"

namespace kpkg::tile {
/// Replaces the op, which has no layouts yet, by a tile.atomic.
void expandAddStore(AddStoreOp op);
} // namespace kpkg::tile
