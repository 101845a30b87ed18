// Tells for parts of tiles in which layouts threads hold all elements of their results.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/PartLayouts.h"
#include "dialect/layout/Algebra.h"

using namespace mlir;

namespace kpkg::kgpu {
using layout::Layout;
using layout::Range;

llvm::Expected<Layout> sliced(Layout layout, ArrayRef<int64_t> small, ArrayRef<int64_t> large) {
  for (unsigned dim = 0; dim < small.size(); ++dim)
    if (small[dim] == 1 && large[dim] != 1) {
      llvm::Expected<Layout> next = layout::slice(layout, dim);
      if (!next)
        return next;
      layout = *next;
    }
  return layout;
}

SmallVector<Range> rangesOf(tile::ExtractOp op) {
  SmallVector<Range> ranges;
  for (auto [offset, step, size, whole] :
       llvm::zip_equal(op.getOffsets(), op.getSteps(), shapeOf(op.getResult()), shapeOf(op.getValue())))
    ranges.push_back({offset, step, size, whole});
  return ranges;
}

SmallVector<SmallVector<Range>> rangesOf(tile::JoinOp op) {
  SmallVector<SmallVector<Range>> result;
  int64_t begin = 0;
  for (Value part : op.getParts()) {
    SmallVector<Range> &ranges = result.emplace_back();
    for (auto [size, whole] : llvm::zip_equal(shapeOf(part), shapeOf(op.getResult())))
      ranges.push_back({0, 1, size, whole});
    ranges[op.getAxis()].offset = begin;
    begin += ranges[op.getAxis()].size;
  }
  return result;
}

std::optional<Layout> enclosing(const Layout &part, ArrayRef<Range> ranges) {
  constexpr unsigned most = 128;
  return layout::enclose(part, ranges, most);
}

std::optional<std::vector<Layout>> layoutsOfParts(tile::JoinOp op, const Layout &result) {
  std::vector<Layout> layouts;
  for (ArrayRef<Range> ranges : rangesOf(op)) {
    std::optional<Layout> part = layout::extract(result, ranges);
    if (!part)
      return std::nullopt;
    layouts.push_back(*part);
  }
  return layouts;
}

bool renamesRegisters(tile::ExtractOp op) {
  return layout::extract(layoutOf(op.getValue()), rangesOf(op)) == layoutOf(op.getResult());
}

bool renamesRegisters(tile::JoinOp op) {
  std::optional<std::vector<Layout>> layouts = layoutsOfParts(op, layoutOf(op.getResult()));
  return layouts && llvm::all_of(llvm::zip_equal(op.getParts(), *layouts),
                                 [](auto pair) { return layoutOf(std::get<0>(pair)) == std::get<1>(pair); });
}
} // namespace kpkg::kgpu
