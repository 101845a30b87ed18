// Tests layouts of parts of tiles by enumeration: no element moves to another thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Extraction.h"
#include "test/dialect/layout/LayoutSamples.h"
#include "gtest/gtest.h"

using namespace kpkg::layout;

namespace {
Layout parse(llvm::StringRef text) { return llvm::cantFail(Layout::parse(text)); }

std::string text(const std::optional<Layout> &layout) { return layout ? layout->str() : "none"; }

/// Expects that each thread holds, in `whole`, the elements that it holds in `part`.
void expectNoMoves(const Layout &whole, const Layout &part, llvm::ArrayRef<Range> ranges) {
  llvm::SmallVector<int64_t> sizes;
  for (const Range &range : ranges)
    sizes.push_back(range.size);
  ASSERT_TRUE(part.covers(sizes)) << part.str();
  forEachPlace(part, [&](const Place &place) {
    if (!part.isInside(place, sizes))
      return;
    Coordinates at = part.coordinates(place);
    for (auto [coordinate, range] : llvm::zip_equal(at, ranges))
      coordinate = range.offset + range.step * coordinate;
    EXPECT_TRUE(whole.registerOf(at, place.lane, place.warp, place.block)) << whole.str() << " to " << part.str();
  });
}

TEST(Extraction, NeighboursLieInRegisters) {
  Layout rows = parse("reg 1:1-2 lane 1:4-32 0:1 rep 1x1");
  Range all{0, 1, 2, 2};
  EXPECT_EQ(text(extract(rows, {all, {1, 2, 32, 64}})), "reg 1:1 lane 1:2-16 0:1 rep 1x1");
  EXPECT_EQ(text(extract(rows, {all, {3, 4, 16, 64}})), "lane 1:1-8 0:1 rep 1x1");
  // Halves lie in different lanes, and every eighth element too.
  EXPECT_EQ(text(extract(rows, {all, {32, 1, 32, 64}})), "none");
  EXPECT_EQ(text(extract(rows, {all, {0, 8, 8, 64}})), "none");
  EXPECT_EQ(text(extract(rows, {{1, 1, 1, 2}, {0, 1, 64, 64}})), "none");
}

TEST(Extraction, AnyElementsOfADimensionInRegisters) {
  Layout columns = parse("lane 0:1-16 rep 1x6");
  EXPECT_EQ(text(extract(columns, {{0, 1, 32, 32}, {5, -2, 3, 6}})), "lane 0:1-16 rep 1x3");
  EXPECT_EQ(text(extract(columns, {{0, 1, 32, 32}, {3, 1, 1, 6}})), "lane 0:1-16 rep 1x1");
}

TEST(Extraction, OtherElementsTakeFurtherRegisters) {
  Layout part = parse("reg 1:1 lane 1:2-8 0:1-2 rep 1x1");
  Range rows{0, 1, 4, 4};
  EXPECT_EQ(text(enclose(part, {rows, {1, 2, 16, 32}}, 128)), "reg 1:2 1:1 lane 1:4-16 0:1-2 rep 1x1");
  EXPECT_EQ(text(enclose(part, {rows, {16, 1, 16, 64}}, 128)), "reg 1:1 1:16-32 lane 1:2-8 0:1-2 rep 1x1");
  EXPECT_EQ(text(enclose(part, {rows, {16, 1, 16, 64}}, 4)), "none");
  EXPECT_EQ(text(enclose(part, {rows, {31, -1, 16, 32}}, 128)), "none");
}

TEST(Extraction, NoElementMoves) {
  unsigned kept = 0, enclosed = 0;
  for (const Layout &layout : regularLayouts(2, 4, {3, 3, 1, 0}))
    for (int64_t step : {1, 2, 3, 4, -1, -2})
      for (int64_t size : {1, 2, 3, 4, 8, 16})
        for (int64_t offset = 0; offset < 16; ++offset) {
          int64_t last = offset + step * (size - 1);
          if (last < 0 || last >= 16)
            continue;
          llvm::SmallVector<Range> ranges = {{0, 1, 4, 4}, {offset, step, size, 16}};
          if (std::optional<Layout> part = extract(layout, ranges)) {
            ++kept;
            expectNoMoves(layout, *part, ranges);
          }
          if (size != 16)
            continue;
          llvm::SmallVector<Range> within = {{0, 1, 4, 4}, {3 * 16, 1, 16, 64}};
          if (std::optional<Layout> whole = enclose(layout, within, 1024)) {
            ++enclosed;
            expectNoMoves(*whole, layout, within);
          }
        }
  EXPECT_GT(kept, 30u);
  EXPECT_GT(enclosed, 10u);
}
} // namespace
