// Chooses the coordinate of an output along which the CTAs of a cluster take adjacent tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/StreamedDots.h"

namespace kpkg::kgpu {
/// Returns the index of that coordinate in the kernel's only loop over tiles. It is the one for which the CTAs of a
/// cluster share most bytes of their products' operands. Returns nothing if they share none, or if a condition is not
/// met:
///  * Products are computed by wgmma from operands that the TMA copies ahead, and the chip has such clusters.
///  * The coordinate does not decide how often a loop runs, since CTAs must use rings equally often.
///  * The kernel writes only tiles that it stores, since the tiles of the last cluster may lie outside of the output.
std::optional<unsigned> clusterCoordinate(tile::KernelOp kernel, llvm::ArrayRef<StreamedDot> products,
                                          const TargetModel &target, unsigned cluster);
inline std::optional<unsigned> clusterCoordinate(tile::KernelOp kernel, const TargetModel &target, unsigned cluster) {
  return clusterCoordinate(kernel, streamedDots(kernel, target), target, cluster);
}

/// Returns the stores that could write something for a tile beyond the last one of this coordinate. Those are all
/// stores that are not known to lie entirely outside of a view.
llvm::SmallVector<mlir::Operation *> storesOfNoTile(tile::ForTilesOp tiles, unsigned number);

/// The parts of an operand that the CTAs of a cluster copy for all of them. The function sharedBox() returns nothing
/// if the CTAs cannot divide the rows of the box.
struct SharedBox {
  unsigned dim = 0;
  llvm::SmallVector<int64_t> part; ///< the extents of a part
};
std::optional<SharedBox> sharedBox(llvm::ArrayRef<int64_t> box, unsigned unit, unsigned elementBytes, unsigned cluster);
} // namespace kpkg::kgpu
