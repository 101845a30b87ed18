// Generates layouts for tests: enumerated regular ones and random irregular ones.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"
#include <random>
#include <vector>

namespace kpkg::layout {
/// The number of bits of each part of a sample.
struct PartBits {
  unsigned registers, lanes, warps, blocks;
};

/// Returns two-dimensional layouts with an atom of 2^log2Elements elements. They cover every distribution of each
/// part's bits over the dimensions that fills the atom, and both orders of the dimensions. Surplus bits of a part are
/// free.
std::vector<Layout> regularLayouts(unsigned log2Rows, unsigned log2Columns, PartBits bits);

/// Returns a layout with an arbitrary invertible map, `freeLanes` and `freeWarps` free bits, and the given repeats.
Layout randomLayout(std::mt19937 &random, PartBits bits, unsigned freeLanes, unsigned freeWarps, unsigned rows,
                    llvm::ArrayRef<int64_t> repeats);

/// Calls `visit` for every place.
template <typename Visit> void forEachPlace(const Layout &layout, Visit visit) {
  for (unsigned block = 0; block < layout.blocks(); ++block)
    for (unsigned warp = 0; warp < layout.warps(); ++warp)
      for (unsigned lane = 0; lane < layout.lanes(); ++lane)
        for (unsigned reg = 0, count = layout.registers(); reg < count; ++reg)
          visit(Place{reg, lane, warp, block});
}

/// Returns the row-major index of coordinates in `shape`.
int64_t numberOf(llvm::ArrayRef<int64_t> coordinates, llvm::ArrayRef<int64_t> shape);
} // namespace kpkg::layout
