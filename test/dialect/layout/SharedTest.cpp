// Tests shared-memory layouts: offsets, hardware swizzles, accesses, bank conflicts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Shared.h"
#include "dialect/layout/Builders.h"
#include "test/dialect/layout/LayoutSamples.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <set>

using namespace kpkg::layout;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
Layout parse(llvm::StringRef text) { return llvm::cantFail(Layout::parse(text)); }

/// Checks that no two elements overlap and that all lie inside sizeBytes().
void checkOffsets(const SharedLayout &memory) {
  SCOPED_TRACE(memory.str());
  EXPECT_EQ(llvm::cantFail(SharedLayout::parse(memory.str())), memory);
  std::set<int64_t> offsets;
  auto shape = memory.shape();
  for (int64_t row = 0; row < shape[0]; ++row)
    for (int64_t column = 0; column < shape[1]; ++column) {
      int64_t offset = memory.offset({row, column});
      ASSERT_TRUE(offsets.insert(offset).second);
      ASSERT_EQ(offset % memory.elementBytes(), 0);
      ASSERT_LE(offset + memory.elementBytes(), memory.sizeBytes());
    }
}

/// Checks that every thread accesses each register's element at its offset in memory.
void checkAccess(const Layout &layout, const SharedLayout &memory, const SharedAccess &access) {
  SCOPED_TRACE(layout.str() + " in " + memory.str());
  unsigned differences = 0;
  std::vector<unsigned> seen(layout.registers(), 0);
  for (const SharedAccess::Vector &vector : access.vectors) {
    ASSERT_EQ(vector.registers.size() * memory.elementBytes(), access.vectorBytes);
    for (unsigned reg : vector.registers)
      ++seen[reg];
    for (unsigned warp = 0; warp < layout.warps(); ++warp)
      for (unsigned lane = 0; lane < layout.lanes(); ++lane) {
        uint32_t thread = vector.xorOffset;
        for (unsigned bit = 0; bit < access.laneBases.size(); ++bit)
          thread ^= (lane >> bit & 1) ? access.laneBases[bit] : 0;
        for (unsigned bit = 0; bit < access.warpBases.size(); ++bit)
          thread ^= (warp >> bit & 1) ? access.warpBases[bit] : 0;
        int64_t offset = thread + vector.addOffset;
        differences += offset % access.vectorBytes != 0;
        for (unsigned reg : vector.registers) {
          differences += memory.offset(layout.coordinates({reg, lane, warp, 0})) != offset;
          offset += memory.elementBytes();
        }
      }
  }
  EXPECT_EQ(differences, 0u);
  EXPECT_THAT(seen, testing::Each(1u));
}

TEST(SharedLayout, RowMajorOfAnyShape) {
  for (int64_t rows = 1; rows <= 12; ++rows)
    for (int64_t columns : {1, 2, 3, 4, 7, 8, 12, 24, 40, 64, 80})
      for (unsigned bytes : {1u, 2u, 4u, 8u}) {
        SharedLayout memory = SharedLayout::rowMajor({rows, columns}, bytes);
        EXPECT_THAT(memory.shape(), ElementsAre(rows, columns));
        EXPECT_EQ(memory.sizeBytes(), rows * columns * bytes);
        checkOffsets(memory);
        for (int64_t row = 0; row < rows; ++row)
          for (int64_t column = 0; column < columns; ++column)
            EXPECT_EQ(memory.offset({row, column}), (row * columns + column) * bytes);
      }
}

TEST(SharedLayout, TmaSwizzles) {
  for (Swizzle swizzle : {Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128})
    for (int64_t rows : {8, 24, 64, 96, 256})
      for (int64_t columns : {64, 128, 192})
        for (unsigned bytes : {1u, 2u, 4u}) {
          unsigned span = swizzle == Swizzle::None ? columns * bytes : static_cast<unsigned>(swizzle);
          llvm::Expected<SharedLayout> memory = SharedLayout::tma({rows, columns}, bytes, swizzle);
          if (columns * bytes % span != 0) {
            llvm::consumeError(memory.takeError());
            continue;
          }
          ASSERT_TRUE(bool(memory));
          checkOffsets(*memory);
          unsigned differences = 0;
          for (int64_t row = 0; row < rows; ++row)
            for (int64_t column = 0; column < columns; ++column) {
              // The hardware's rule, applied to the byte address inside the panel.
              int64_t byte = column * bytes, address = byte / span * rows * span + row * span + byte % span;
              if (swizzle != Swizzle::None)
                address ^= (address >> 7 & (span / 16 - 1)) << 4;
              differences += memory->offset({row, column}) != address;
            }
          EXPECT_EQ(differences, 0u) << memory->str();
        }
  EXPECT_EQ(llvm::cantFail(SharedLayout::tma({64, 64}, 2, Swizzle::B128)).alignment(), 1024);
  EXPECT_EQ(llvm::cantFail(SharedLayout::tma({64, 32}, 2, Swizzle::B64)).alignment(), 512);
  EXPECT_EQ(llvm::cantFail(SharedLayout::tma({64, 16}, 2, Swizzle::B32)).alignment(), 256);
  llvm::Expected<SharedLayout> wrong = SharedLayout::tma({64, 48}, 2, Swizzle::B128);
  EXPECT_THAT(llvm::toString(wrong.takeError()), HasSubstr("does not fall into 128-byte panels"));
}

TEST(SharedLayout, WrongOnesSayWhy) {
  auto whyNot = [](llvm::StringRef text) {
    llvm::Expected<SharedLayout> memory = SharedLayout::parse(text);
    return memory ? "accepted" : llvm::toString(memory.takeError());
  };
  EXPECT_THAT(whyNot("2B 0:2,2 rep 1"), HasSubstr("two elements would share a place"));
  EXPECT_THAT(whyNot("4B 0:2 rep 1"), HasSubstr("no multiple of the element size"));
  EXPECT_THAT(whyNot("4B 0:4 rep 3 stride 4"), HasSubstr("less than the 8 bytes"));
  EXPECT_THAT(whyNot("3B rep 1"), HasSubstr("no power of two"));
  EXPECT_THAT(whyNot("4B 1:4 rep 1"), HasSubstr("beyond the rank"));
  EXPECT_THAT(whyNot("4B 0:4"), HasSubstr("missing rep"));
  EXPECT_THAT(whyNot("B rep 1"), HasSubstr("expected an element size"));
}

TEST(SharedAccess, SwizzledRowsOfAccumulator) {
  // A 64x64 bf16 accumulator is written to a 128-byte swizzled tile by 4-byte stores without conflicts. Without the
  // swizzle the conflicts are 8-way.
  Layout accumulator = wgmmaAccumulator(64);
  SharedLayout swizzled = llvm::cantFail(SharedLayout::tma({64, 64}, 2, Swizzle::B128)),
               plain = SharedLayout::rowMajor({64, 64}, 2);
  SharedAccess good = llvm::cantFail(planAccess(accumulator, swizzled)),
               bad = llvm::cantFail(planAccess(accumulator, plain));
  checkAccess(accumulator, swizzled, good);
  checkAccess(accumulator, plain, bad);
  EXPECT_EQ(good.vectorBytes, 4u);
  EXPECT_EQ(countWavefronts(good), idealWavefronts(good));
  EXPECT_EQ(countWavefronts(bad), 8 * idealWavefronts(bad));
}

TEST(SharedAccess, WideVectorsAndRepeats) {
  Layout row = parse("reg 1:1-4 lane 1:8-128 warp 1:256-512 rep 1x5");
  SharedLayout memory = SharedLayout::rowMajor({1, 5120}, 2);
  SharedAccess access = llvm::cantFail(planAccess(row, memory));
  EXPECT_EQ(access.vectorBytes, 16u);
  EXPECT_EQ(countWavefronts(access), 5u * 4);
  checkAccess(row, memory, access);
  // The memory's atom (1024) is smaller than the layout's, so repeats of the memory become part of it.
  Layout longer = parse("reg 1:1-2 1:512-1024 lane 1:4-64 warp 1:128-256 rep 1x3");
  SharedLayout many = SharedLayout::rowMajor({1, 6144}, 4);
  checkAccess(longer, many, llvm::cantFail(planAccess(longer, many)));
  llvm::Expected<SharedAccess> tooLarge = planAccess(longer, memory);
  EXPECT_THAT(llvm::toString(tooLarge.takeError()), HasSubstr("reaches beyond the memory"));
}

TEST(SharedAccess, PartsOfTiles) {
  auto memory = [](llvm::StringRef text) { return llvm::cantFail(SharedLayout::parse(text)); };
  auto plan = [&](const Layout &layout, const SharedLayout &part) {
    checkOffsets(part);
    llvm::Expected<SharedAccess> access = planAccess(layout, part);
    if (access)
      checkAccess(layout, part, *access);
    else
      llvm::consumeError(access.takeError());
    return bool(access);
  };
  Layout rows = parse("reg 1:1 lane 1:2-16 0:1 warp 0:2-4 rep 1x1"), columns = parse("lane 0:1-4 rep 1x6");
  EXPECT_TRUE(plan(rows, memory("4B rep 8x32 stride 256,8")));
  EXPECT_FALSE(plan(columns, memory("4B rep 8x6 stride 256,4")));
  EXPECT_FALSE(plan(columns, memory("4B rep 8x6 stride 256,-8")));
  EXPECT_FALSE(plan(rows, memory("4B rep 8x32 stride 256,-4")));
}

TEST(SharedAccess, CountIsTheFormula) {
  std::mt19937 random(23);
  unsigned conflicts = 0;
  for (unsigned i = 0; i < 400; ++i) {
    unsigned freeLanes = random() % 3;
    Layout layout = randomLayout(random, {unsigned(random() % 4), 5, unsigned(random() % 2), 0}, freeLanes, 0,
                                 random() % 4, {1, int64_t(1 + 2 * (random() % 2))});
    Layout other = randomLayout(random, {unsigned(random() % 4), 5, 0, 0}, 0, 0, random() % 4, {1, 1});
    if (layout.rank() != other.rank())
      continue;
    for (unsigned bytes : {1u, 2u, 4u, 8u}) {
      SharedLayout memory = SharedLayout::conflictFree(layout, i % 2 ? layout : other, bytes);
      SharedAccess access = llvm::cantFail(planAccess(layout, memory));
      EXPECT_EQ(countWavefronts(access), wavefrontsByRank(access)) << layout.str() << " in " << memory.str();
      conflicts += countWavefronts(access) != idealWavefronts(access);
      if (i < 100)
        checkAccess(layout, memory, access);
    }
  }
  for (const Layout &layout : regularLayouts(4, 5, {2, 5, 2, 0})) {
    SharedLayout memory = SharedLayout::rowMajor(layout.shape(), 4);
    SharedAccess access = llvm::cantFail(planAccess(layout, memory));
    EXPECT_EQ(countWavefronts(access), wavefrontsByRank(access)) << layout.str();
    conflicts += countWavefronts(access) != idealWavefronts(access);
  }
  EXPECT_GT(conflicts, 0u) << "the samples hold no conflict at all: the comparison says nothing";
}

TEST(SharedAccess, RegularPairsHaveNoConflicts) {
  // Conversions from rows to columns and all intermediate layouts in one warp: for whole words on both sides, a swizzle
  // without conflicts exists.
  unsigned pairs = 0;
  for (auto [rows, columns] : {std::pair(5u, 5u), std::pair(4u, 6u), std::pair(6u, 3u)}) {
    std::vector<Layout> layouts = regularLayouts(rows, columns, {rows + columns - 5, 5, 0, 0});
    for (const Layout &store : layouts)
      for (const Layout &load : layouts) {
        SharedLayout memory = SharedLayout::conflictFree(store, load, 4);
        for (const Layout *layout : {&store, &load}) {
          SharedAccess access = llvm::cantFail(planAccess(*layout, memory));
          EXPECT_EQ(countWavefronts(access), idealWavefronts(access))
              << store.str() << " | " << load.str() << " | " << memory.str();
        }
        ++pairs;
      }
  }
  EXPECT_GT(pairs, 100u);
}
} // namespace
