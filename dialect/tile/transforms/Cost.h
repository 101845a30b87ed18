// What a kernel costs, as a formula over the shapes of its arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/transforms/TripCount.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>

namespace kpkg::tile {

/// One factor of a term; all are known when a launch is: the shapes of the arguments, their numbers and the grid.
struct CostFactor {
  enum class Kind {
    Blocks,  ///< number of blocks of the grid
    Extent,  ///< shape[dimension] of view argument `argument`
    Tiles,   ///< the same divided by `size`, rounded up
    Clipped, ///< the same, but at most `size`
    Share,   ///< 1 / shape[dimension] of view argument `argument`: of what that many tiles share
    Count,   ///< what `steps` compute, at least 0
  };
  Kind kind = Kind::Blocks;
  unsigned argument = 0;
  unsigned dimension = 0;
  int64_t size = 0;
  TripCount steps = {};
  bool operator==(const CostFactor &) const = default;
};

/// `count` times the product of `factors`.
struct CostTerm {
  double count = 1;
  llvm::SmallVector<CostFactor, 2> factors;
};

/// Sums of terms over the whole launch. An estimate: elements outside of a view do not count, operands that stay on
/// chip count once, branches count as taken.
struct Cost {
  llvm::SmallVector<CostTerm>
      flops; ///< a multiplication and an addition of a dot are two; every other operation on an element is one
  llvm::SmallVector<CostTerm> bytes; ///< read from and written to memory
};

/// The tiles that a persistent kernel's loop over tiles visits; nothing when it has not one such loop, or its counts
/// are no formulas of shapes.
std::optional<CostTerm> countTiles(KernelOp kernel);

/// The single factor that an extent, or an extent divided rounding up, is; nothing for other values.
std::optional<CostFactor> countFactor(KernelOp kernel, mlir::Value count);

/// Nothing when a loop's trip count is not a formula of shapes, of Int arguments and of the grid.
std::optional<Cost> estimateCost(KernelOp kernel);

/// Floating-point operations of one output tile or block, elements outside of the views included: what it takes where
/// it reaches beyond them. Nothing when a loop's trip count is not a formula of shapes, of Int arguments and of the
/// grid.
std::optional<llvm::SmallVector<CostTerm>> estimateTileFlops(KernelOp kernel);

/// Where and why such an estimate fails: "softmax.k:12:5: a loop whose number of iterations is no formula of shapes and
/// of Int arguments". Empty where it does not.
std::string whyNoEstimate(KernelOp kernel);

/// "2*dim(0,1)*dim(1,2) + 3*blocks*clip(0,1,4096)", for tests.
std::string toString(llvm::ArrayRef<CostTerm> terms);

} // namespace kpkg::tile
