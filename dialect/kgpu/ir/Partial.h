// Computes layouts of partial results: one for each warp that holds a part of an axis.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::kgpu {
/// Returns how many warps (times CTAs of the cluster) hold different parts of `axis`.
int64_t partialExtent(const layout::Layout &layout, unsigned axis);
/// Returns whether a reduction along `axis` is complete within each warp.
inline bool isWithinWarp(const layout::Layout &layout, unsigned axis) { return partialExtent(layout, axis) == 1; }
/// Returns the layout of one warp's share of `axis`, with coordinates numbered without gaps. Warp and block bits do
/// not move along `axis`. Registers and their order are those of `layout`. Returns an error if a bit moves along
/// `axis` by more than one bit of the coordinate.
llvm::Expected<layout::Layout> shareOfWarp(const layout::Layout &layout, unsigned axis);
/// Returns the layout after a reduction of `axis` within each warp. Registers along `axis` are gone, and lanes are
/// free. Warp bits along it, then block bits, have the coordinates 1, 2, 4, ... on it. Returns an error if a bit moves
/// along `axis` and another dimension.
llvm::Expected<layout::Layout> partialLayout(const layout::Layout &layout, unsigned axis);
/// Returns the layout in which each warp reads all partial results. It is `slice(layout, axis)`, but lanes that are
/// free there lie along `axis`, as many as `partialExtent` needs, then registers. A reduction over `axis` in this
/// layout is complete within each warp, and its result has `slice(layout, axis)` up to free bits.
llvm::Expected<layout::Layout> gatherLayout(const layout::Layout &layout, unsigned axis);
/// The same for results with `extent` coordinates on `axis`.
llvm::Expected<layout::Layout> gatherLayout(const layout::Layout &layout, unsigned axis, int64_t extent);
} // namespace kpkg::kgpu
