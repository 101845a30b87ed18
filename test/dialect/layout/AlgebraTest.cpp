// Tests the algebra of layouts: inverses, slices, broadcasts, products, permutations, reshapes, and hardware layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Builders.h"
#include "test/dialect/layout/LayoutSamples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace kpkg::layout;
using testing::ElementsAre;

namespace {
Layout parse(llvm::StringRef text) { return llvm::cantFail(Layout::parse(text)); }

TEST(BitMatrix, InverseAfterComposeIsIdentity) {
  std::mt19937_64 random(3);
  unsigned right = 0, left = 0;
  for (unsigned i = 0; i < 2000; ++i) {
    unsigned rows = 1 + random() % 12, columns = 1 + random() % 12;
    BitMatrix matrix(rows, columns);
    for (unsigned column = 0; column < columns; ++column)
      matrix.setColumn(column, random() & ((uint64_t(1) << rows) - 1));
    unsigned rank = matrix.rank();
    EXPECT_EQ(matrix.kernel().size(), columns - rank);
    for (uint64_t vector : matrix.kernel())
      EXPECT_EQ(matrix.apply(vector), 0u);
    auto fromRight = matrix.rightInverse();
    EXPECT_EQ(fromRight.has_value(), rank == rows);
    if (fromRight) {
      EXPECT_EQ(matrix.compose(*fromRight), BitMatrix::identity(rows));
      ++right;
    }
    auto fromLeft = matrix.leftInverse();
    EXPECT_EQ(fromLeft.has_value(), rank == columns);
    if (fromLeft) {
      EXPECT_EQ(fromLeft->compose(matrix), BitMatrix::identity(columns));
      ++left;
    }
    uint64_t argument = random() & ((uint64_t(1) << columns) - 1);
    auto solution = matrix.solve(matrix.apply(argument));
    ASSERT_TRUE(solution.has_value());
    EXPECT_EQ(matrix.apply(*solution), matrix.apply(argument));
  }
  EXPECT_GT(right, 100u);
  EXPECT_GT(left, 100u);
}

TEST(Algebra, SliceIsWhatAReductionLeaves) {
  Layout layout = parse("reg 1:1 0:1-2 lane 1:2-4 rep 1x3");
  EXPECT_EQ(llvm::cantFail(slice(layout, 1)).str(), "reg 0:1-2 lane *2 rep 1x1");
  EXPECT_EQ(llvm::cantFail(slice(layout, 0)).str(), "reg 1:1 lane 1:2-4 rep 1x3");
  llvm::Expected<Layout> mixed = slice(parse("lane 0:1+1:1 1:1 rep 1x1"), 1);
  EXPECT_FALSE(bool(mixed));
  llvm::consumeError(mixed.takeError());
}

TEST(Algebra, SlicesAgreeWithTheirParents) {
  for (unsigned rows = 0; rows <= 4; ++rows)
    for (unsigned columns = 0; columns <= 4; ++columns)
      for (const Layout &layout : regularLayouts(rows, columns, {2, 4, 1, 0}))
        for (unsigned dim : {0u, 1u}) {
          Layout sliced = llvm::cantFail(slice(layout, dim));
          EXPECT_EQ(sliced.shape()[dim], 1);
          EXPECT_EQ(sliced.shape()[1 - dim], layout.shape()[1 - dim]);
          unsigned missing = 0;
          // Every holder of an element also holds the element of its slice.
          forEachPlace(layout, [&](const Place &place) {
            Coordinates where = layout.coordinates(place);
            where[dim] = 0;
            missing += !sliced.registerOf(where, place.lane, place.warp, place.block);
          });
          EXPECT_EQ(missing, 0u) << layout.str();
        }
}

TEST(Algebra, BroadcastThenSlice) {
  for (int64_t extent : {1, 2, 3, 8, 24, 100})
    for (const char *text :
         {"lane *5 warp *2 rep 1x1", "reg 0:1 lane *2 0:2-8 warp * rep 3x1", "lane 0:1-16 rep 1x1"}) {
      Layout layout = parse(text), wide = broadcast(layout, 1, extent);
      EXPECT_GE(wide.shape()[1], extent);
      EXPECT_LT(wide.shape()[1], 2 * extent + 1);
      EXPECT_EQ(llvm::cantFail(slice(wide, 1)), layout);
    }
}

TEST(Algebra, PermuteAndDimensions) {
  Layout layout = parse("reg 1:1 0:1-2 lane 1:2-4 rep 5x3 order 0,1");
  EXPECT_EQ(permute(layout, {1, 0}).str(), "reg 0:1 1:1-2 lane 0:2-4 rep 3x5");
  EXPECT_EQ(permute(permute(layout, {1, 0}), {1, 0}), layout);
  Layout cube = insertDim(layout, 1);
  EXPECT_EQ(cube.str(), "reg 2:1 0:1-2 lane 2:2-4 rep 5x1x3 order 0,2,1");
  EXPECT_EQ(removeDim(cube, 1), layout);
  EXPECT_EQ(permute(cube, {2, 0, 1}).str(), "reg 0:1 1:1-2 lane 0:2-4 rep 3x5x1");
}

TEST(Algebra, ProductAndDivide) {
  Layout tile = mmaAccumulator(), outer = parse("reg 0:1 warp 1:1-2 rep 1x3");
  Layout whole = llvm::cantFail(product(tile, outer));
  EXPECT_EQ(whole.str(), "reg 1:1 0:8-16 lane 1:2-4 0:1-4 warp 1:8-16 rep 1x3");
  EXPECT_EQ(divide(whole, tile), outer);
  EXPECT_EQ(divide(whole, mmaOperandA(2)), std::nullopt);
  EXPECT_EQ(divide(whole, parse("reg 0:1 rep 1x1")), std::nullopt);
  std::mt19937 random(11);
  for (unsigned i = 0; i < 300; ++i) {
    Layout inner = randomLayout(random, {unsigned(random() % 3), 3, 1, 0}, random() % 2, 0, random() % 3, {1, 1});
    if (inner.repeats()[0] != 1 || inner.repeats()[1] != 1)
      continue;
    Layout rest = randomLayout(random, {unsigned(random() % 2), 2, 1, 1}, 0, random() % 2, random() % 3,
                               {int64_t(1 + 2 * (random() % 3)), int64_t(1 + 2 * (random() % 3))});
    Layout both = llvm::cantFail(product(inner, rest));
    EXPECT_EQ(divide(both, inner), rest) << inner.str() << " | " << rest.str();
  }
}

TEST(Algebra, TransitionTakesPlacesToPlaces) {
  std::mt19937 random(5);
  for (unsigned i = 0; i < 200; ++i) {
    Layout from = randomLayout(random, {2, 4, 1, 0}, 0, 0, 3, {1, 1}),
           to = randomLayout(random, {2, 4, 1, 0}, 0, 0, 3, {1, 1});
    if (from.atom() != to.atom())
      continue;
    BitMatrix moves = transition(from, to);
    unsigned differences = 0;
    forEachPlace(to, [&](const Place &place) {
      Place source = *from.placeOf(to.coordinates(place));
      differences += moves.apply(place.reg | place.lane << 2 | place.warp << 6) !=
                     (source.reg | source.lane << 2 | source.warp << 6);
    });
    EXPECT_EQ(differences, 0u);
    EXPECT_EQ(transition(to, from).compose(moves), BitMatrix::identity(7));
  }
}

TEST(Algebra, EqualModuloBroadcast) {
  Layout one = parse("reg 0:1-2 lane 0:4-64 rep 1");
  EXPECT_TRUE(equalModuloBroadcast(one, parse("reg 0:1-2 lane 0:4-64 warp *2 rep 1")));
  EXPECT_TRUE(equalModuloBroadcast(parse("reg 0:1-2 lane 0:4-64 warp *2 rep 1"), one));
  EXPECT_FALSE(equalModuloBroadcast(one, parse("reg 0:1-2 lane 0:4-64 warp 0:128 rep 1")));
  EXPECT_FALSE(equalModuloBroadcast(one, parse("reg 0:1-2 lane 0:4-64 rep 3")));
}

/// Checks that a reshaped layout keeps each register's row-major element number. Returns whether a reshape exists.
bool checkReshape(const Layout &layout, llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to) {
  llvm::Expected<Layout> reshaped = reshape(layout, from, to);
  if (!reshaped) {
    llvm::consumeError(reshaped.takeError());
    return false;
  }
  EXPECT_EQ(reshaped->registers(), layout.registers());
  unsigned differences = 0;
  forEachPlace(layout, [&](const Place &place) {
    bool inside = layout.isInside(place, from);
    differences += inside != reshaped->isInside(place, to);
    if (inside)
      differences += numberOf(layout.coordinates(place), from) != numberOf(reshaped->coordinates(place), to);
  });
  EXPECT_EQ(differences, 0u) << layout.str() << " -> " << reshaped->str();
  return true;
}

TEST(Algebra, Reshape) {
  Layout row = parse("reg 0:1-4 lane 0:8-128 warp 0:256-512 rep 5");
  EXPECT_TRUE(checkReshape(row, {5120}, {5, 1024}));
  EXPECT_TRUE(checkReshape(row, {5120}, {40, 128}));
  EXPECT_TRUE(checkReshape(row, {5120}, {1, 5120}));
  EXPECT_TRUE(checkReshape(row, {5120}, {5, 4, 1, 256}));
  EXPECT_TRUE(checkReshape(row, {5000}, {1, 5000, 1}));
  EXPECT_TRUE(checkReshape(row, {4608}, {36, 128})) << "padding behind the last row";
  EXPECT_FALSE(checkReshape(row, {5120}, {1024, 5}));
  EXPECT_FALSE(checkReshape(row, {5120}, {2, 2560}));
  Layout square = parse("reg 1:1-2 lane 1:4-8 0:1-4 rep 3x1");
  EXPECT_TRUE(checkReshape(square, {24, 16}, {384}));
  EXPECT_TRUE(checkReshape(square, {24, 16}, {3, 8, 16}));
  EXPECT_TRUE(checkReshape(square, {24, 16}, {12, 32}));
  EXPECT_FALSE(checkReshape(square, {24, 15}, {360}));
  EXPECT_TRUE(checkReshape(parse("lane *5 rep none"), {}, {1, 1}));
  EXPECT_TRUE(checkReshape(parse("lane *5 rep 1x1"), {1, 1}, {}));
  for (unsigned rows = 0; rows <= 4; ++rows)
    for (unsigned columns = 0; columns <= 4; ++columns)
      for (const Layout &layout : regularLayouts(rows, columns, {2, 4, 1, 0}))
        for (unsigned inner = 0; inner <= rows + columns; ++inner)
          EXPECT_TRUE(checkReshape(layout, layout.shape(), {1 << (rows + columns - inner), 1 << inner}));
}

TEST(Builders, Coalesced) {
  EXPECT_EQ(coalesced({1, 4096}, 2, {32, 4}).str(), "reg 1:1-4 1:1024-2048 lane 1:8-128 warp 1:256-512 rep 1x1");
  EXPECT_EQ(coalesced({1, 5120}, 2, {32, 4}).str(), "reg 1:1-4 lane 1:8-128 warp 1:256-512 rep 1x5");
  EXPECT_EQ(coalesced({1, 5000}, 2, {32, 4}).str(), "reg 1:1-4 lane 1:8-128 warp 1:256-512 rep 1x5");
  EXPECT_EQ(coalesced({1, 128}, 2, {32, 4}).str(), "reg 1:1-4 lane 1:8-64 * warp *2 rep 1x1");
  EXPECT_EQ(coalesced({8, 128}, 2, {32, 4}).str(), "reg 1:1-4 lane 1:8-64 0:1 warp 0:2-4 rep 1x1");
  // 48 columns: 8 more rows, so that no lane holds padding.
  EXPECT_EQ(coalesced({64, 96}, 2, {32, 4}).str(), "reg 1:1-4 lane 1:8-16 0:1-4 warp 0:8-16 rep 2x3");
  EXPECT_EQ(coalesced({64, 64}, 4, {32, 1}, 16, {0, 1}).str(), "reg 0:1-2 1:2-32 lane 0:4-32 1:1 rep 1x1");
  EXPECT_EQ(coalesced({}, 4, {32, 2}).str(), "lane *5 warp * rep none");
  EXPECT_EQ(replicated(2, {32, 1, 2}).str(), "lane *5 block * rep 1x1");
}

TEST(Builders, WithinWarp) {
  EXPECT_EQ(withinWarp({4, 256}, 4, {32, 4}, 1).str(), "reg 1:1-2 1:128 lane 1:4-64 warp 0:1-2 rep 1x1");
  EXPECT_EQ(withinWarp({300}, 2, {32, 2}, 0).str(), "reg 0:1-4 0:256 lane 0:8-128 warp * rep 1");
  EXPECT_EQ(withinWarp({16, 3}, 4, {32, 1}, 1).str(), "reg 0:8 lane 1:1-2 0:1-4 rep 1x1");
  EXPECT_EQ(withinWarp({64, 8}, 4, {32, 2, 2}, 0).str(), "reg 0:1 1:4 lane 0:2-32 warp 1:1 block 1:2 rep 1x1");
  auto keeping = [](llvm::ArrayRef<int64_t> shape, llvm::StringRef wide, unsigned axis) {
    std::optional<Layout> kept = withinWarp(shape, 4, llvm::cantFail(Layout::parse(wide)), axis);
    return kept ? kept->str() : "none";
  };
  EXPECT_EQ(keeping({256, 64}, "reg 1:1-2 0:64-128 lane 1:4-32 0:1 warp 0:2-4 block 0:8-32 rep 1x1", 1),
            "reg 1:1 0:4 0:64-128 lane 1:2-32 warp 0:1-2 block 0:8-32 rep 1x1");
  EXPECT_EQ(keeping({64, 8}, "reg 0:1-2 lane 0:4-32 1:1 warp 1:2 block * rep 1x2", 1),
            "reg 0:8-32 lane 1:1-4 0:1-2 warp 0:4 block * rep 1x1");
  EXPECT_EQ(keeping({64, 8}, "reg 0:1-2 lane 0:4-32 1:1 warp 1:2 block 1:4 rep 1x1", 1), "none");
}

TEST(Builders, Blocked) {
  Layout layout = llvm::cantFail(blocked({24, 64}, {1, 4}, {4, 8}, {2, 1}, {1, 1}));
  EXPECT_EQ(layout.str(), "reg 1:1-2 1:32 lane 1:4-16 0:1-2 warp 0:4 rep 3x1");
  llvm::Expected<Layout> wrong = blocked({24, 64}, {1, 3}, {4, 8}, {2, 1}, {1, 1});
  EXPECT_FALSE(bool(wrong));
  llvm::consumeError(wrong.takeError());
}

TEST(Builders, FragmentsAreThoseOfThePtxManual) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    int64_t group = lane / 4, inGroup = lane % 4;
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_THAT(mmaAccumulator().coordinates({i, lane, 0, 0}),
                  ElementsAre(group + (i < 2 ? 0 : 8), inGroup * 2 + i % 2));
    for (unsigned i = 0; i < 8; ++i)
      EXPECT_THAT(mmaOperandA(2).coordinates({i, lane, 0, 0}),
                  ElementsAre(group + (i % 4 < 2 ? 0 : 8), inGroup * 2 + i % 2 + (i < 4 ? 0 : 8)));
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_THAT(mmaOperandB(2).coordinates({i, lane, 0, 0}),
                  ElementsAre(inGroup * 2 + i % 2 + (i < 2 ? 0 : 8), group));
    for (unsigned i = 0; i < 16; ++i)
      EXPECT_THAT(mmaOperandA(1).coordinates({i, lane, 0, 0}),
                  ElementsAre(group + (i % 8 < 4 ? 0 : 8), inGroup * 4 + i % 4 + (i < 8 ? 0 : 16)));
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_THAT(mmaOperandA(4).coordinates({i, lane, 0, 0}),
                  ElementsAre(group + (i % 2 ? 8 : 0), inGroup + (i < 2 ? 0 : 4)));
    for (unsigned i = 0; i < 2; ++i)
      EXPECT_THAT(mmaOperandB(4).coordinates({i, lane, 0, 0}), ElementsAre(inGroup + 4 * i, group));
    for (unsigned warp = 0; warp < 4; ++warp)
      for (unsigned n : {8u, 24u, 96u, 256u})
        for (unsigned i = 0; i < n / 2; ++i)
          EXPECT_THAT(wgmmaAccumulator(n).coordinates({i, lane, warp, 0}),
                      ElementsAre(16 * warp + group + (i % 4 < 2 ? 0 : 8), 8 * (i / 4) + inGroup * 2 + i % 2));
    for (unsigned i = 0; i < 8; ++i)
      EXPECT_THAT(ldmatrix(4).coordinates({i, lane, 0, 0}), ElementsAre(8 * (i / 2) + group, inGroup * 2 + i % 2));
  }
  EXPECT_EQ(wgmmaAccumulator(96).str(), "reg 1:1 0:8 1:8-16 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x3");
  // The row statistics of an accumulator, replicated over the four lanes of a row.
  EXPECT_EQ(llvm::cantFail(slice(wgmmaAccumulator(96), 1)).str(), "reg 0:8 lane *2 0:1-4 warp 0:16-32 rep 1x1");
}
} // namespace
