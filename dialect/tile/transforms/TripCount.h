// How often a loop runs, as steps of a computation over what a launch knows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include <optional>
#include <vector>

namespace kpkg::tile {

/// One step in reverse Polish notation: a number is put on a stack, or the two upmost ones are replaced by what an
/// operation makes of them.
struct TripCountStep {
  enum class Kind {
    Constant, ///< `number`
    Extent,   ///< shape[dimension] of view argument `number`
    Value,    ///< Int argument `number`
    Grid,     ///< blocks of the grid along axis `number`
    Add,
    Multiply,
    FloorDivide, ///< by a positive number
    CeilDivide,  ///< by a positive number
    Min,
    Max,
  };
  Kind kind = Kind::Constant;
  int64_t number = 0;
  unsigned dimension = 0;
  bool operator==(const TripCountStep &) const = default;
};
using TripCount = std::vector<TripCountStep>;

/// Of a value that is the extent of a dimension of a view argument: both their numbers.
using ExtentOf = llvm::function_ref<std::optional<std::pair<unsigned, unsigned>>(mlir::Value)>;

/// How often a loop from `low` to before `high` by `step`, which is positive, runs: below 0 for not at all. Nothing
/// where that depends on more than extents, Int arguments and the grid. Where each block goes on from where another one
/// stops, it is what a whole part has: `part * n` to `min(part * n + n, end)` is `n`; and where blocks take turns, from
/// `block_id` by `grid_dim`, it is what the first one has. Of a choice between two numbers it is the larger one.
std::optional<TripCount> countTrips(mlir::Value low, mlir::Value high, mlir::Value step, ExtentOf extentOf);

/// "value(2) -3 + 5 ceildiv"
std::string toString(const TripCount &steps);

} // namespace kpkg::tile
