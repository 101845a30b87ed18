// Layouts for the tests: regular ones by enumeration, irregular ones by chance.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/layout/Layout.h"
#include <random>
#include <vector>

namespace kpkg::layout {
/// How many bits a sample's parts have.
struct PartBits {
  unsigned registers, lanes, warps, blocks;
};

/// Two-dimensional layouts of 2^log2Elements elements in the atom, with every split of each part's bits over the
/// dimensions that fills it, both orders of the dimensions, and free bits where a part has more bits than are left.
std::vector<Layout> regularLayouts(unsigned log2Rows, unsigned log2Columns, PartBits bits);

/// A layout with an arbitrary invertible map; `freeLanes` and `freeWarps` bits are free. Repeats as given.
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

/// Row-major number of coordinates in `shape`.
int64_t numberOf(llvm::ArrayRef<int64_t> coordinates, llvm::ArrayRef<int64_t> shape);
} // namespace kpkg::layout
