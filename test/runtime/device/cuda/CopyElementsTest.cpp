// Tests strided copies on a GPU with a stand-in for the driver: the copy's description, results, and graphs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/CopyElements.h"
#include "runtime/device/cuda/StridedCopy.h"
#include "test/runtime/device/cuda/CudaCall.h"

#include <numeric>
#include <vector>

using namespace kpkg;
using namespace kpkg::cuda;
using kpkg::test::CudaCall;

namespace {

TEST(DescribeCopy, JoinsDimensionsAndWidensElements) {
  // [8, 197, 768] of 2 bytes, with the first two dimensions transposed in memory: rows of 96 units of 16 bytes.
  std::vector<int64_t> shape = {8, 197, 768}, from = {768, 8 * 768, 1}, to = {197 * 768, 768, 1};
  int64_t bytes = 2;
  StridedElements copy = describeCopy(0x1000, from, 0x2000, to, shape, bytes);
  EXPECT_EQ(bytes, 16);
  EXPECT_EQ(copy.count, 8u * 197 * 96);
  ASSERT_EQ(copy.rank, 3u);
  EXPECT_EQ(std::vector<uint64_t>(copy.shape, copy.shape + 3), (std::vector<uint64_t>{96, 197, 8}));
  EXPECT_EQ(std::vector<int64_t>(copy.fromStrides, copy.fromStrides + 3), (std::vector<int64_t>{1, 768, 96}));
  EXPECT_EQ(std::vector<int64_t>(copy.toStrides, copy.toStrides + 3), (std::vector<int64_t>{1, 96, 197 * 96}));
}

TEST(DescribeCopy, KeepsElementsThatDoNotStayTogether) {
  std::vector<int64_t> shape = {3, 4}, to = {4, 1};
  int64_t bytes = 4;
  EXPECT_EQ(describeCopy(0x1000, std::vector<int64_t>{1, 3}, 0x2000, to, shape, bytes).rank, 2u); // transposed
  EXPECT_EQ(bytes, 4);
  EXPECT_EQ(describeCopy(0x1000, std::vector<int64_t>{5, 1}, 0x2000, to, shape, bytes).rank,
            2u); // rows at an odd distance
  EXPECT_EQ(bytes, 4);
  StridedElements aligned =
      describeCopy(0x1004, std::vector<int64_t>{8, 1}, 0x2000, to, shape, bytes); // aligned to 4 bytes
  EXPECT_EQ(bytes, 4);
  EXPECT_EQ(aligned.count, 12u);
  EXPECT_EQ(describeCopy(0x1000, std::vector<int64_t>{0, 0}, 0x2000, to, shape, bytes).rank,
            1u); // one element, broadcast
  EXPECT_EQ(bytes, 4);
}

TEST(TurnCopy, PutsNeighboursFirst) {
  // [2, 40, 50, 70] from channels-last to contiguous, and back.
  std::vector<int64_t> shape = {2, 40, 50, 70}, last = {40 * 50 * 70, 1, 70 * 40, 40},
                       dense = {40 * 50 * 70, 50 * 70, 70, 1};
  int64_t bytes = 2;
  StridedElements copy = describeCopy(0x1000, last, 0x2000, dense, shape, bytes);
  EXPECT_EQ(turnCopy(copy, bytes), 2u * 55 * 1); // 3,500 pixels of 40 channels
  EXPECT_EQ(std::vector<uint64_t>(copy.shape, copy.shape + 3), (std::vector<uint64_t>{3500, 40, 2}));
  EXPECT_EQ(std::vector<int64_t>(copy.fromStrides, copy.fromStrides + 3), (std::vector<int64_t>{40, 1, 140000}));
  EXPECT_EQ(std::vector<int64_t>(copy.toStrides, copy.toStrides + 3), (std::vector<int64_t>{1, 3500, 140000}));
  bytes = 4;
  copy = describeCopy(0x1000, dense, 0x2000, last, shape, bytes);
  EXPECT_EQ(turnCopy(copy, bytes), 2u * 2 * 110);
  EXPECT_EQ(copy.fromStrides[1], 1);
  EXPECT_EQ(copy.toStrides[0], 1);
}

TEST(TurnCopy, LeavesOtherCopies) {
  int64_t bytes = 4;
  auto squares = [&](std::vector<int64_t> shape, std::vector<int64_t> from, std::vector<int64_t> to) {
    StridedElements copy = describeCopy(0x1000, from, 0x2000, to, shape, bytes);
    return turnCopy(copy, bytes);
  };
  EXPECT_EQ(squares({40, 3}, {1, 40}, {3, 1}), 0u);    // few columns
  EXPECT_EQ(squares({40, 50}, {64, 1}, {50, 1}), 0u);  // rows are contiguous on both sides
  EXPECT_EQ(squares({40, 50}, {2, 80}, {50, 1}), 0u);  // the source is not contiguous along any dimension
  EXPECT_EQ(squares({40, 50}, {0, 0}, {50, 1}), 0u);   // one element
  EXPECT_EQ(squares({40, 50}, {-1, 40}, {50, 1}), 0u); // negative strides
  EXPECT_EQ(squares({40, 50}, {1, 40}, {50, 1}), 4u);
}

class CopyElements : public CudaCall {
protected:
  /// Copies x[i, j] with strides (1, 10) to contiguous y[i, j]; both are 10 x 6.
  Status copyTransposed() {
    std::iota(x, x + 60, 0.0f);
    std::vector<int64_t> shape = {10, 6}, from = {1, 10}, to = {6, 1};
    return stridedCopy(reinterpret_cast<uint64_t>(x), from, reinterpret_cast<uint64_t>(y), to, shape, sizeof(float),
                       stream);
  }
  void expectTransposed() {
    for (int i = 0; i < 10; ++i)
      for (int j = 0; j < 6; ++j)
        ASSERT_EQ(y[i * 6 + j], float(j * 10 + i));
  }
};

TEST_F(CopyElements, OneKernelInsteadOfManyCommands) {
  ASSERT_TRUE(copyTransposed());
  expectTransposed();
  EXPECT_EQ(fake->elementCopies, 1);
  EXPECT_EQ(fake->copies, 0);
}

TEST_F(CopyElements, SquaresAreTurned) {
  std::iota(x, x + 17 * 16, 0.0f);
  std::vector<int64_t> shape = {17, 16}, from = {1, 17}, to = {16, 1};
  ASSERT_TRUE(stridedCopy(reinterpret_cast<uint64_t>(x), from, reinterpret_cast<uint64_t>(y), to, shape, sizeof(float),
                          stream));
  for (int i = 0; i < 17; ++i)
    for (int j = 0; j < 16; ++j)
      ASSERT_EQ(y[i * 16 + j], float(j * 17 + i));
  EXPECT_EQ(fake->turns, 1);
}

TEST_F(CopyElements, DenseMemoryIsOneCommand) {
  std::vector<int64_t> shape = {10, 6}, dense = {6, 1};
  ASSERT_TRUE(stridedCopy(reinterpret_cast<uint64_t>(x), dense, reinterpret_cast<uint64_t>(y), dense, shape,
                          sizeof(float), stream));
  EXPECT_EQ(fake->elementCopies, 0);
  EXPECT_EQ(fake->copies, 1);
}

TEST_F(CopyElements, LoadedKernelsAreRecordedIntoGraphs) {
  ASSERT_TRUE(copyTransposed()); // loads the copy kernels, if no earlier test did
  int loads = fake->loads;
  fake->capturing = 1;
  ASSERT_TRUE(copyTransposed());
  expectTransposed();
  EXPECT_EQ(fake->elementCopies, 2);
  EXPECT_EQ(fake->loads, loads);
}

} // namespace
