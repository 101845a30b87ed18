// Derives divisors, signs and widths of index values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Value.h"

namespace kpkg::tile {

/// Returns the largest power of two, at most 2^20, that provably divides `index`.
int64_t divisorOf(mlir::Value index);

/// Returns whether `index` is never negative. Sums and products of non-negative values count as non-negative, because
/// extents, strides and grids are far below 2^63.
bool isNonNegative(mlir::Value index);

/// Returns whether `index`, possibly cast to a fixed width, fits a signed 32-bit integer.
bool fitsInt32(mlir::Value index);

} // namespace kpkg::tile
