// Checks fragments of mma.sync against the tables of the PTX ISA, and ldmatrix against a model of its byte movements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/MmaFragments.h"
#include "dialect/layout/MatrixLoad.h"
#include <gtest/gtest.h>

using namespace kpkg;
using namespace kpkg::kgpu;
using layout::Layout;
using layout::SharedLayout;

namespace {
/// Return the coordinates of a lane's element `i` of operands of m16n8k(32 / bytes). Source: PTX ISA, 9.7.14.
std::pair<int64_t, int64_t> leftElement(unsigned lane, unsigned i, unsigned bytes) {
  unsigned inWord = 4 / bytes, word = i / inWord;
  return {lane / 4 + 8 * (word & 1), lane % 4 * inWord + i % inWord + (word >> 1) * 4 * inWord};
}
std::pair<int64_t, int64_t> rightElement(unsigned lane, unsigned i, unsigned bytes) {
  unsigned inWord = 4 / bytes, word = i / inWord;
  return {lane % 4 * inWord + i % inWord + word * 4 * inWord, lane / 4};
}
std::pair<int64_t, int64_t> sumElement(unsigned lane, unsigned i) {
  return {lane / 4 + 8 * (i >> 1), lane % 4 * 2 + (i & 1)};
}

struct Grid {
  std::vector<int64_t> shape;
  unsigned warps;
};
const Grid grids[] = {{{16, 8}, 1}, {{64, 64}, 4}, {{128, 256}, 8}, {{16, 64}, 4}, {{96, 80}, 4}, {{64, 8}, 4}};

TEST(MmaFragments, FollowTheInstruction) {
  for (const Grid &grid : grids)
    for (unsigned bytes : {1u, 2u, 4u}) {
      Layout sum = mmaSyncAccumulator(grid.shape, {.warps = grid.warps});
      ASSERT_TRUE(isMmaSyncAccumulator(sum)) << sum.str();
      ASSERT_TRUE(sum.covers(grid.shape));
      int64_t step = kMmaSyncDepthBytes / bytes, depth = 2 * step;
      Layout left = mmaSyncLeft(sum, depth, bytes), right = mmaSyncRight(sum, depth, bytes);
      ASSERT_EQ(left.shape()[0], sum.shape()[0]);
      ASSERT_EQ(left.shape()[1], depth);
      ASSERT_EQ(right.shape()[1], sum.shape()[1]);
      for (unsigned warp = 0; warp < grid.warps; ++warp)
        for (unsigned reg = 0; reg < sum.registers(); reg += 4) {
          // The 16x8 block that this warp holds in these registers; its operands are checked below.
          auto block = sum.coordinates({reg, 0, warp, 0});
          for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned i = 0; i < 4; ++i) {
              auto [row, column] = sumElement(lane, i);
              auto at = sum.coordinates({reg + i, lane, warp, 0});
              ASSERT_EQ(at[0], block[0] + row);
              ASSERT_EQ(at[1], block[1] + column);
            }
            for (int64_t k = 0; k < depth; k += step) {
              // A lane's elements have the instruction's order, in the same registers of all lanes.
              for (unsigned i = 0; i < 16 / bytes; ++i) {
                auto [row0, k0] = leftElement(0, i, bytes);
                auto [row, column] = leftElement(lane, i, bytes);
                auto first = left.registerOf({block[0] + row0, k + k0}, 0, warp);
                auto mine = left.registerOf({block[0] + row, k + column}, lane, warp);
                ASSERT_TRUE(first && mine);
                ASSERT_EQ(*first, *mine);
                ASSERT_EQ(*mine % (4 / bytes), i % (4 / bytes));
              }
              for (unsigned i = 0; i < 8 / bytes; ++i) {
                auto [k0, column0] = rightElement(0, i, bytes);
                auto [row, column] = rightElement(lane, i, bytes);
                auto first = right.registerOf({k + k0, block[1] + column0}, 0, warp);
                auto mine = right.registerOf({k + row, block[1] + column}, lane, warp);
                ASSERT_TRUE(first && mine);
                ASSERT_EQ(*first, *mine);
                ASSERT_EQ(*mine % (4 / bytes), i % (4 / bytes));
              }
            }
          }
        }
    }
}

/// A model of shared memory: maps each byte to its element's number in the tile, and its index in the element.
struct Bytes {
  std::vector<std::pair<int64_t, unsigned>> of; ///< number of the element, byte within it

  Bytes(const SharedLayout &memory, llvm::ArrayRef<int64_t> shape) : of(memory.sizeBytes(), {-1, 0}) {
    for (int64_t row = 0; row < shape[0]; ++row)
      for (int64_t column = 0; column < shape[1]; ++column)
        for (unsigned byte = 0; byte < memory.elementBytes(); ++byte)
          of[memory.offset({row, column}) + byte] = {row * shape[1] + column, byte};
  }
};

int64_t addressOf(const layout::SharedAccess &access, const layout::SharedAccess::Vector &vector, unsigned lane,
                  unsigned warp) {
  uint32_t offset = vector.xorOffset;
  for (auto [bits, bases] : {std::pair(lane, &access.laneBases), std::pair(warp, &access.warpBases)})
    for (auto [bit, basis] : llvm::enumerate(*bases))
      if (bits >> bit & 1)
        offset ^= basis;
  return offset + vector.addOffset;
}

/// Models ldmatrix for every warp, and checks that each lane's registers receive the elements of the layout.
void checkLoad(const Layout &layout, const SharedLayout &memory, llvm::ArrayRef<int64_t> shape,
               llvm::ArrayRef<int64_t> at, bool isTransposed) {
  auto load = layout::planMatrixLoad(layout, memory, at);
  ASSERT_TRUE(load);
  ASSERT_EQ(load->isTransposed, isTransposed);
  Bytes bytes(memory, shape);
  unsigned elementBytes = memory.elementBytes();
  std::set<unsigned> seen;
  for (unsigned warp = 0; warp < layout.warps(); ++warp)
    for (auto [vector, words] : llvm::zip_equal(load->rows.vectors, load->words))
      for (unsigned matrix = 0; matrix < words.size(); ++matrix)
        for (unsigned lane = 0; lane < 32; ++lane) {
          // The lane's word comes from row lane / 4, or transposed, from column lane / 4 of 2-byte elements.
          for (unsigned byte = 0; byte < 4; ++byte) {
            unsigned row = isTransposed ? lane % 4 * 2 + byte / 2 : lane / 4;
            unsigned inRow = isTransposed ? lane / 4 * 2 + byte % 2 : lane % 4 * 4 + byte;
            int64_t address = addressOf(load->rows, vector, 8 * matrix + row, warp);
            ASSERT_EQ(address % 16, 0);
            unsigned reg = words[matrix][byte / elementBytes];
            seen.insert(reg);
            auto wanted = layout.coordinates({reg, lane, warp, 0});
            auto [element, part] = bytes.of[address + inRow];
            ASSERT_EQ(element, (wanted[0] + at[0]) * shape[1] + wanted[1] + at[1]);
            ASSERT_EQ(part, byte % elementBytes);
          }
        }
  ASSERT_EQ(seen.size(), layout.registers());
}

/// Covers both operands of a product, contiguous along either dimension, in buffers like those of kgpu-expand-mma.
TEST(MmaFragments, LdmatrixReadsThemWithoutConflicts) {
  for (const Grid &grid : grids)
    for (unsigned bytes : {1u, 2u, 4u})
      for (int64_t stepsOfDepth : {1, 2, 4})
        for (bool isLeft : {false, true})
          for (unsigned contiguous : {0u, 1u}) {
            Layout sum = mmaSyncAccumulator(grid.shape, {.warps = grid.warps});
            int64_t step = kMmaSyncDepthBytes / bytes, depth = stepsOfDepth * step;
            auto fragments = [&](int64_t extent) {
              return isLeft ? mmaSyncLeft(sum, extent, bytes) : mmaSyncRight(sum, extent, bytes);
            };
            llvm::SmallVector<int64_t> shape = {grid.shape[0], depth};
            if (!isLeft)
              shape = {depth, grid.shape[1]};
            bool isTransposed = contiguous == (isLeft ? 0u : 1u);
            auto rows = layout::matrixRows(fragments(depth), bytes, contiguous);
            ASSERT_EQ(bool(rows), !isTransposed || bytes == 2);
            if (!rows)
              continue;
            Layout copy = layout::coalesced(shape, bytes, {.warps = grid.warps}, 16, {contiguous, 1 - contiguous});
            SharedLayout memory = SharedLayout::conflictFree(copy, *rows, bytes);
            SCOPED_TRACE(testing::Message() << grid.shape[0] << "x" << grid.shape[1] << " warps " << grid.warps
                                            << " bytes " << bytes << " depth " << depth << " left " << isLeft
                                            << " contiguous " << contiguous << " memory " << memory.str());
            for (int64_t k = 0; k < depth; k += step) {
              llvm::SmallVector<int64_t> at = {0, k};
              if (!isLeft)
                at = {k, 0};
              checkLoad(fragments(step), memory, memory.shape(), at, isTransposed);
              auto load = layout::planMatrixLoad(fragments(step), memory, at);
              ASSERT_TRUE(load);
              EXPECT_EQ(layout::countWavefronts(load->rows), layout::idealWavefronts(load->rows));
            }
            auto write = layout::planAccess(copy, memory);
            ASSERT_TRUE(bool(write)) << llvm::toString(write.takeError());
            if (shape[contiguous] * bytes >= 16)
              EXPECT_EQ(write->vectorBytes, 16u);
            EXPECT_EQ(layout::countWavefronts(*write), layout::idealWavefronts(*write));
          }
}
} // namespace
