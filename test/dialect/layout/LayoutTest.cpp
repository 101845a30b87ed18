// Tests layouts: text form, validation, and which thread holds which element.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Layout.h"
#include "dialect/layout/Builders.h"
#include "dialect/layout/Subdivision.h"
#include "test/dialect/layout/LayoutSamples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace kpkg::layout;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
Layout parse(llvm::StringRef text) { return llvm::cantFail(Layout::parse(text)); }

std::string whyNot(llvm::StringRef text) {
  llvm::Expected<Layout> layout = Layout::parse(text);
  return layout ? "accepted" : llvm::toString(layout.takeError());
}

TEST(Layout, DrawnExample) {
  Layout layout = parse("reg 1:1 0:1-2 lane 1:2-4 rep 1x3");
  EXPECT_EQ(layout.registers(), 24u);
  EXPECT_THAT(layout.shape(), ElementsAre(4, 24));
  EXPECT_THAT(layout.coordinates({3, 1, 0, 0}), ElementsAre(1, 3));
  EXPECT_THAT(layout.coordinates({8, 0, 0, 0}), ElementsAre(0, 8));
  EXPECT_EQ(layout.placeOf({0, 9}), (Place{9, 0, 0, 0}));
  EXPECT_EQ(layout.registerOf({1, 3}, 1), 3u);
  EXPECT_EQ(layout.registerOf({1, 3}, 0), std::nullopt);
  EXPECT_EQ(layout.placeOf({0, 24}), std::nullopt);
  EXPECT_FALSE(layout.isInside({8, 0, 0, 0}, {4, 8}));
  EXPECT_TRUE(layout.covers({4, 20}));
  EXPECT_FALSE(layout.covers({5, 20}));
}

TEST(Layout, TextOfUnusualOnes) {
  for (const char *text :
       {"rep none", "rep 1", "lane *5 warp *2 rep 1x1", "reg 0:1+1:1 1:1 lane 1:2-16 * warp 0:2 block 1:32 rep 3x5",
        "reg 1:1 lane 1:2-32 rep 3x5 order 0,1", "lane * 0:1-8 rep 7"})
    EXPECT_EQ(parse(text).str(), text);
}

TEST(Layout, CanonicalForm) {
  // Repeats by a power of two become register bits, as far as the numbering stays.
  EXPECT_EQ(parse("reg 0:1 lane 0:2-32 rep 6").str(), "reg 0:1 0:64 lane 0:2-32 rep 3");
  EXPECT_EQ(parse("lane 1:1-16 rep 4x2").str(), "reg 1:32 0:1-2 lane 1:1-16 rep 1x1");
  EXPECT_EQ(parse("lane 1:1-16 rep 4x3").str(), "lane 1:1-16 rep 4x3");
  EXPECT_EQ(parse("lane 1:1-16 rep 4x1 order 0,1"), parse("lane 1:1-16 rep 4x1"));
  EXPECT_NE(parse("lane 1:1-16 rep 3x3 order 0,1"), parse("lane 1:1-16 rep 3x3"));
}

TEST(Layout, WrongTextsSayWhere) {
  EXPECT_THAT(whyNot("lane 1:1-16"), HasSubstr("missing rep"));
  EXPECT_THAT(whyNot("lane 1:1-12 rep 1x1"), HasSubstr("at \"1:1-12\""));
  EXPECT_THAT(whyNot("lane 0:x rep 1"), HasSubstr("at \"0:x\""));
  EXPECT_THAT(whyNot("lane 0:1 lane 0:2 rep 1"), HasSubstr("part given twice"));
  EXPECT_THAT(whyNot("lane 0:1 1:1 rep 1"), HasSubstr("beyond the rank at \"1:1\""));
  EXPECT_THAT(whyNot("0:1 rep 1"), HasSubstr("expected reg, lane"));
  EXPECT_THAT(whyNot("lane 0:1 rep 1x"), HasSubstr("expected repeats"));
}

TEST(Layout, WrongLayoutsSayWhy) {
  EXPECT_THAT(whyNot("lane 0:1 0:1 rep 1"), HasSubstr("lane bit 1 depends on the bits before it"));
  EXPECT_THAT(whyNot("lane 0:1 0:2 0:3 rep 1"), HasSubstr("lane bit 2 depends"));
  EXPECT_THAT(whyNot("lane 0:2 rep 1"), HasSubstr("no place for some elements"));
  EXPECT_THAT(whyNot("reg * rep 1"), HasSubstr("register bit 0 is free"));
  EXPECT_THAT(whyNot("lane 0:1-32 rep 1"), HasSubstr("lane has 6 bits, at most 5"));
  EXPECT_THAT(whyNot("rep 0"), HasSubstr("repeat 0"));
  EXPECT_THAT(whyNot("rep 3x3 order 0,0"), HasSubstr("not a permutation"));
  EXPECT_THAT(whyNot("rep 4096x512"), HasSubstr("a thread would hold 2097152"));
}

/// Checks all queries of a layout against coordinates() alone.
void checkQueries(const Layout &layout) {
  SCOPED_TRACE(layout.str());
  EXPECT_EQ(parse(layout.str()), layout);
  EXPECT_EQ(hash_value(parse(layout.str())), hash_value(layout));
  auto shape = layout.shape();
  std::vector<unsigned> holders(numberOf(shape, shape) > 0 ? shape[0] * shape[1] : 0, 0);
  unsigned wrongPlaces = 0;
  unsigned lanesFree = layout.freeBits(Part::Lane), warpsFree = layout.freeBits(Part::Warp),
           blocksFree = layout.freeBits(Part::Block);
  forEachPlace(layout, [&](const Place &place) {
    Coordinates where = layout.coordinates(place);
    ++holders[numberOf(where, shape)];
    Place first = {place.reg, place.lane & ~lanesFree, place.warp & ~warpsFree, place.block & ~blocksFree};
    wrongPlaces += layout.placeOf(where) != first;
    wrongPlaces += layout.registerOf(where, place.lane, place.warp, place.block) != place.reg;
  });
  EXPECT_EQ(wrongPlaces, 0u);
  unsigned replicas = 1u << (llvm::popcount(lanesFree) + llvm::popcount(warpsFree) + llvm::popcount(blocksFree));
  EXPECT_THAT(holders, testing::Each(replicas));
}

/// Checks the contract of vectors(), and that no vectors of twice the length exist.
void checkVectors(const Layout &layout) {
  SCOPED_TRACE(layout.str());
  for (unsigned dim = 0; dim < 2; ++dim) {
    unsigned length = layout.vectorLength(dim, 16), seen = 0;
    auto groups = layout.vectors(dim, 16);
    for (const auto &group : groups) {
      ASSERT_EQ(group.size(), length);
      seen += length;
      for (unsigned lane : {0u, 1u, 5u, layout.lanes() - 1}) {
        if (lane >= layout.lanes())
          continue;
        Coordinates first = layout.coordinates({group[0], lane, layout.warps() - 1, 0});
        ASSERT_EQ(first[dim] % length, 0);
        for (unsigned reg : group) {
          ASSERT_EQ(layout.coordinates({reg, lane, layout.warps() - 1, 0}), first);
          ++first[dim];
        }
      }
    }
    ASSERT_EQ(seen, layout.registers());
  }
}

TEST(Layout, RegularOnes) {
  unsigned count = 0;
  for (unsigned log2Rows = 0; log2Rows <= 6; ++log2Rows)
    for (unsigned log2Columns = 0; log2Rows + log2Columns <= 8; ++log2Columns)
      for (PartBits bits : {PartBits{0, 5, 0, 0}, PartBits{1, 5, 1, 0}, PartBits{3, 5, 0, 0}, PartBits{2, 3, 1, 1}})
        for (const Layout &layout : regularLayouts(log2Rows, log2Columns, bits)) {
          checkQueries(layout);
          checkVectors(layout);
          ++count;
        }
  EXPECT_GT(count, 500u);
}

TEST(Layout, Repeats) {
  for (int64_t rows = 1; rows <= 12; ++rows)
    for (int64_t columns = 1; columns <= 12; ++columns)
      for (bool rowsFirst : {false, true}) {
        Layout::Fields fields;
        fields.bases[0] = {{0, 1}};
        fields.bases[1] = {{0, 2}, {0, 4}, {1, 0}};
        fields.repeats = {rows, columns};
        fields.order = {rowsFirst ? 0u : 1u, rowsFirst ? 1u : 0u};
        Layout layout = Layout::make(fields);
        checkQueries(layout);
        checkVectors(layout);
        EXPECT_EQ(layout.registers(), 2 * rows * columns);
      }
}

TEST(Layout, IrregularOnes) {
  std::mt19937 random(7);
  for (unsigned i = 0; i < 200; ++i) {
    Layout layout = randomLayout(random, {unsigned(random() % 4), unsigned(random() % 6), unsigned(random() % 3), 0}, 0,
                                 0, random() % 4, {int64_t(1 + random() % 5), int64_t(1 + random() % 5)});
    checkQueries(layout);
    checkVectors(layout);
  }
}

TEST(Layout, VectorLengths) {
  EXPECT_EQ(parse("reg 1:1-4 lane 1:8-128 rep 1x5").vectorLength(1, 8), 8u);
  EXPECT_EQ(parse("reg 1:1-4 lane 1:8-128 rep 1x5").vectorLength(1, 4), 4u);
  EXPECT_EQ(parse("reg 1:1-4 lane 1:8-128 rep 1x5").vectorLength(0, 4), 1u);
  EXPECT_EQ(wgmmaAccumulator(96).vectorLength(1, 8), 2u);
}

TEST(Layout, FieldsOfWords) {
  Layout words = parse("reg 0:1-2 lane 0:4-64 warp 0:128-256 rep 1");
  Layout fields = subdivide(words, 0, 8);
  EXPECT_EQ(fields.str(), "reg 0:1-16 lane 0:32-512 warp 0:1024-2048 rep 1");
  EXPECT_EQ(coarsen(fields, 0, 8), words);
  // Fields of a word may be any registers, but not in other threads, and none may be missing.
  EXPECT_EQ(coarsen(parse("reg 1:4 0:1 1:1-2 1:8 lane 1:16-64 rep 1x1"), 1, 8)->str(),
            "reg 0:1 1:1 lane 1:2-8 rep 1x1");
  EXPECT_EQ(coarsen(parse("reg 1:1-2 lane 1:4-64 rep 1x1"), 1, 8), std::nullopt);
  EXPECT_EQ(coarsen(parse("reg 1:1 0:1+1:2 1:4 lane 0:1 rep 1x1"), 1, 8), std::nullopt);
  EXPECT_EQ(coarsen(parse("reg 1:1 lane 1:2-32 rep 1x5"), 1, 4), std::nullopt);
}
} // namespace
