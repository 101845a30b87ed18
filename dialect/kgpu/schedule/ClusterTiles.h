// Along which coordinate of an output the CTAs of a cluster take tiles that lie beside each other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"

namespace kpkg::kgpu {
/// The number of that coordinate in the kernel's only loop over tiles: CTAs of a cluster of so many then read most of
/// the bytes of the operands of their products in common. Nothing where they have none in common, or where they could
/// not go in step:
///  * products must be of warpgroups that read from what is copied ahead, and the chip must have clusters;
///  * the coordinate does not decide how often a loop runs: CTAs use rings as often as each other;
///  * the tiles of the last cluster may lie outside of the output, so the kernel writes nothing but tiles that it
///  stores.
std::optional<unsigned> clusterCoordinate(tile::KernelOp kernel, const TargetModel &target, unsigned cluster);

/// The stores that could write something for a tile behind the last one of this coordinate: those of which it is not
/// known that all of it lies outside of a view.
llvm::SmallVector<mlir::Operation *> storesOfNoTile(tile::ForTilesOp tiles, unsigned number);

/// Bytes of which each CTA of a cluster can copy its part for all, of an operand: along the returned dimension of its
/// view; nothing where its rows cannot be shared out.
struct SharedBox {
  unsigned dim = 0;
  llvm::SmallVector<int64_t> part; ///< the extents of a part
};
std::optional<SharedBox> sharedBox(llvm::ArrayRef<int64_t> box, unsigned unit, unsigned elementBytes, unsigned cluster);
} // namespace kpkg::kgpu
