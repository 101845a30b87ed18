// Estimates the cost of a kernel as a formula over the shapes of its arguments.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/transforms/TripCount.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>
#include <string>

namespace kpkg::tile {

using manifest::CostFactor;
using manifest::CostTerm;

/// Sums of terms over the whole launch. This is an estimate: elements outside a view do not count, operands that stay
/// on chip count once, and branches count as taken.
struct Cost {
  /// A multiply-add of a dot counts as two operations, any other operation on an element as one.
  std::vector<CostTerm> flops;
  std::vector<CostTerm> bytes; ///< Read from and written to memory.
};

/// Returns the number of iterations of a persistent kernel's loop over tiles. Returns nothing unless the kernel has
/// exactly one such loop and its counts are formulas of shapes and of Int arguments.
std::optional<CostTerm> countTiles(KernelOp kernel);

/// Returns the single factor of an extent, of an extent divided rounding up, or of another formula. Returns nothing for
/// other values.
std::optional<CostFactor> countFactor(KernelOp kernel, mlir::Value count);

/// Estimates the cost. Returns nothing when a trip count is no formula of shapes, of Int arguments and of the grid.
std::optional<Cost> estimateCost(KernelOp kernel);

/// Returns the floating-point operations of one output tile or block. They include elements outside the views, which
/// the tile computes too. Returns nothing when a trip count is no formula of shapes, of Int arguments and of the grid.
std::optional<std::vector<CostTerm>> estimateTileFlops(KernelOp kernel);

/// Returns where and why such an estimate fails, or an empty text where it does not. For example: "softmax.k:12:5: a
/// loop whose number of iterations is no formula of shapes and of Int arguments".
std::string whyNoEstimate(KernelOp kernel);

/// Prints terms for tests, for example "2*dim(0,1)*dim(1,2) + 3*blocks*clip(0,1,4096)".
std::string toString(llvm::ArrayRef<CostTerm> terms);

} // namespace kpkg::tile
