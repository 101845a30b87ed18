// What is known of index values: divisors and signs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Value.h"

namespace kpkg::tile {

/// The largest power of two, at most 2^20, that divides `index` for sure.
int64_t divisorOf(mlir::Value index);

/// Whether `index` is never negative. Sums and products of such values count as such: extents, strides and grids are
/// far below 2^63.
bool isNonNegative(mlir::Value index);

/// Whether `index`, also one that was cast to a fixed width, fits a signed 32-bit integer.
bool fitsInt32(mlir::Value index);

} // namespace kpkg::tile
