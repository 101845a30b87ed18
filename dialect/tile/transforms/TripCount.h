// Derives the trip count of a loop as a stack program over the values that a launch knows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "runtime/manifest/Records.h"
#include <optional>
#include <vector>

namespace kpkg::tile {

using manifest::TripCountStep;
using TripCount = std::vector<TripCountStep>;

/// Returns the numbers of a view argument and its dimension, if a value is that extent.
using ExtentOf = llvm::function_ref<std::optional<std::pair<unsigned, unsigned>>(mlir::Value)>;

/// Returns the trip count of a loop from `low` to before `high` by `step`, which is positive. A result below 0 means no
/// iteration. Returns nothing where the count depends on values other than extents, Int arguments and the grid. If each
/// block continues where another one stops, the result is the count of a full part: `part * n` to `min(part * n + n,
/// end)` gives `n`. If blocks take turns, from `block_id` by `grid_dim`, it is the count of the first block. A choice
/// between two numbers gives the larger one.
std::optional<TripCount> countTrips(mlir::Value low, mlir::Value high, mlir::Value step, ExtentOf extentOf);

/// Returns a number as a formula of the same kind. Returns nothing where countTrips() returns nothing.
std::optional<TripCount> formulaOf(mlir::Value number, ExtentOf extentOf);

/// Prints the steps, for example "value(2) -3 + 5 ceildiv".
std::string toString(const TripCount &steps);

} // namespace kpkg::tile
