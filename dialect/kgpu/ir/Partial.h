// The layout of what each warp made of its part of an axis.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::kgpu {
/// How many warps (times CTAs of the cluster) hold different parts of `axis`.
int64_t partialExtent(const layout::Layout &layout, unsigned axis);
/// Whether a reduction along `axis` ends within each warp.
inline bool isWithinWarp(const layout::Layout &layout, unsigned axis) { return partialExtent(layout, axis) == 1; }
/// What one warp holds of `axis`, its coordinates numbered without gaps: warp and block bits do not move along `axis`.
/// Registers and their order are those of `layout`. Error when a bit moves along `axis` by more than one bit of the
/// coordinate.
llvm::Expected<layout::Layout> shareOfWarp(const layout::Layout &layout, unsigned axis);
/// The layout after a reduction of `axis` within each warp: registers and lanes along `axis` are gone or free; warp
/// bits along it, then block bits, have the coordinates 1, 2, 4, ... on it. Error when a bit moves along `axis` and
/// another dimension.
llvm::Expected<layout::Layout> partialLayout(const layout::Layout &layout, unsigned axis);
/// Where each warp reads the partial results: the layout `slice(layout, axis)`, but with the lanes that are free there
/// lying along `axis`, as many as `partialExtent` needs, then registers. A reduction over `axis` in it ends within each
/// warp and gives `slice(layout, axis)` up to free bits.
llvm::Expected<layout::Layout> gatherLayout(const layout::Layout &layout, unsigned axis);
/// The same for results with `extent` coordinates on `axis`.
llvm::Expected<layout::Layout> gatherLayout(const layout::Layout &layout, unsigned axis, int64_t extent);
} // namespace kpkg::kgpu
