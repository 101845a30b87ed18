// Declares the size of elements in memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Types.h"

namespace kpkg::tile {
/// Returns the bytes of `count` elements side by side in memory, rounded up. An index has 8 bytes. Booleans have one
/// byte each.
int64_t elementBytes(mlir::Type element, int64_t count = 1);
} // namespace kpkg::tile
