// Derives the layout of a part of a tile from the layout of the tile, and the reverse, such that no element moves.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"

namespace kpkg::layout {
/// The elements `offset + step * i` of a dimension of extent `whole`, for 0 <= i < `size`.
struct Range {
  int64_t offset, step, size, whole;
};

/// Returns the layout of the elements at `ranges`, one for each dimension, in which each thread holds the elements that
/// it holds in `whole`. Fails when a thread would hold none, or when the elements of a thread depend on its number in
/// another way than in layouts.
std::optional<Layout> extract(const Layout &whole, llvm::ArrayRef<Range> ranges);

/// Returns a layout of the whole tile for which extract() gives `part`. Each thread holds the other elements in further
/// registers. Fails when no such layout exists, or when a thread would hold more than `mostRegisters`.
std::optional<Layout> enclose(const Layout &part, llvm::ArrayRef<Range> ranges, unsigned mostRegisters);
} // namespace kpkg::layout
