// Tests the algebra of views and the overlap tests against enumeration of all elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/plan/Views.h"
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>

using namespace kpkg::plan;

namespace {

View viewOf(std::vector<int64_t> shape, std::vector<int64_t> strides, int64_t offset = 0,
            DType dtype = DType::Float32) {
  View view;
  view.buffer = 0;
  view.dtype = dtype;
  view.rank = static_cast<int32_t>(shape.size());
  view.offset = offset;
  std::copy(shape.begin(), shape.end(), view.shape.begin());
  std::copy(strides.begin(), strides.end(), view.strides.begin());
  return view;
}

/// Returns element offsets in row-major order.
std::vector<int64_t> offsetsOf(const View &view) {
  std::vector<int64_t> result;
  std::array<int64_t, maxRank> index{};
  for (int64_t k = view.numel(); k > 0; --k) {
    int64_t offset = view.offset;
    for (int i = 0; i < view.rank; ++i)
      offset += index[i] * view.strides[i];
    result.push_back(offset);
    for (int i = view.rank - 1; i >= 0 && ++index[i] == view.shape[i]; --i)
      index[i] = 0;
  }
  return result;
}

View randomView(std::mt19937_64 &random) {
  auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  std::vector<int64_t> shape(static_cast<size_t>(below(5))), strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    shape[i] = below(12) ? 1 + below(4) : 0;
    strides[i] = below(4) ? stride : below(20) - 6;
    stride *= std::max<int64_t>(shape[i], 1) + (below(4) == 0);
  }
  if (below(3) == 0 && shape.size() > 1) {
    std::swap(shape[0], shape.back());
    std::swap(strides[0], strides.back());
  }
  return viewOf(shape, strides, below(10));
}

TEST(Views, ReshapeKeepsElementsOrRefuses) {
  int views = 0;
  std::mt19937_64 random(1);
  for (int k = 0; k < 20000; ++k) {
    View view = randomView(random);
    // A random factorisation of the number of elements.
    std::vector<int64_t> shape;
    int64_t rest = view.numel();
    while (rest > 1 && shape.size() < 6) {
      int64_t factor = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(rest));
      if (rest % factor)
        continue;
      shape.push_back(factor);
      rest /= factor;
    }
    shape.push_back(rest);
    View next = view;
    if (!reshapeView(next, shape)) {
      EXPECT_FALSE(isContiguous(view));
      continue;
    }
    ++views;
    EXPECT_EQ(offsetsOf(next), offsetsOf(view));
  }
  EXPECT_GT(views, 5000);
}

TEST(Views, ReshapeFindsTheViewOfAMergedPair) {
  View view = viewOf({4, 3, 2}, {8, 2, 1});
  ASSERT_TRUE(reshapeView(view, std::vector<int64_t>{4, 6}));
  EXPECT_EQ(view.strides[0], 8);
  EXPECT_EQ(view.strides[1], 1);
  View apart = viewOf({4, 3, 2}, {8, 2, 1});
  EXPECT_FALSE(reshapeView(apart, std::vector<int64_t>{24}));
  View ones = viewOf({1, 3, 1}, {77, 2, 99});
  ASSERT_TRUE(reshapeView(ones, std::vector<int64_t>{3}));
  EXPECT_EQ(ones.strides[0], 2);
}

TEST(Views, ShapeWithAnOpenExtent) {
  Dims dims;
  std::string why;
  View view = viewOf({4, 6}, {6, 1});
  ASSERT_TRUE(reshapedShape(view, std::vector<int64_t>{-1, 8}, dims, why));
  EXPECT_EQ(dims.extents[0], 3);
  EXPECT_FALSE(reshapedShape(view, std::vector<int64_t>{-1, 5}, dims, why));
  EXPECT_EQ(why, "24 elements cannot take shape [-1, 5]");
  EXPECT_FALSE(reshapedShape(view, std::vector<int64_t>{-1, -1}, dims, why));
  EXPECT_FALSE(reshapedShape(view, std::vector<int64_t>{-2, -12}, dims, why));
  EXPECT_FALSE(reshapedShape(view, std::vector<int64_t>{INT64_MAX, INT64_MAX}, dims, why));
  View empty = viewOf({0, 6}, {6, 1});
  ASSERT_TRUE(reshapedShape(empty, std::vector<int64_t>{-1, 5}, dims, why));
  EXPECT_EQ(dims.extents[0], 0);
  EXPECT_FALSE(reshapedShape(empty, std::vector<int64_t>{-1, 0}, dims, why));
}

TEST(Views, SliceAsInPython) {
  for (int64_t extent : {0, 1, 5, 8})
    for (int64_t start = -9; start <= 9; ++start)
      for (int64_t stop = -9; stop <= 9; ++stop)
        for (int64_t step : {1, 2, 3, 100, -1, -2, -3, -100}) {
          std::vector<int64_t> expected;
          int64_t from = start < 0 ? std::max<int64_t>(start + extent, 0) : start;
          int64_t to = stop < 0 ? stop + extent : std::min(stop, extent);
          if (step < 0) {
            from = std::min(start < 0 ? start + extent : start, extent - 1);
            to = stop < 0 ? std::max<int64_t>(stop + extent, -1) : stop;
          }
          for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
            expected.push_back(7 + 3 * i);
          View view = viewOf({extent}, {3}, 7);
          std::string why;
          ASSERT_TRUE(sliceView(view, -1, start, stop, step, why));
          EXPECT_EQ(offsetsOf(view), expected) << extent << " " << start << ":" << stop << ":" << step;
        }
}

std::set<int64_t> bytesOf(const View &view, int64_t distance) {
  std::set<int64_t> bytes;
  for (int64_t offset : offsetsOf(view))
    for (int64_t b = 0; b < dtypeBytes(view.dtype); ++b)
      bytes.insert(distance + offset * dtypeBytes(view.dtype) + b);
  return bytes;
}

TEST(Overlap, NeverMissesASharedByte) {
  std::mt19937_64 random(2);
  int exact = 0, total = 0;
  for (int k = 0; k < 20000; ++k) {
    View a = randomView(random), b = randomView(random);
    b.dtype = random() % 2 ? DType::Float32 : DType::Float16;
    int64_t distance = static_cast<int64_t>(random() % 400) - 200;
    std::set<int64_t> first = bytesOf(a, 0), second = bytesOf(b, distance);
    bool shared = std::ranges::any_of(second, [&](int64_t byte) { return first.contains(byte); });
    bool answer = mayOverlap(a, b, distance);
    ASSERT_TRUE(answer || !shared) << describeShape(a.shapeSpan()) << describeShape(a.stridesSpan()) << " and "
                                   << describeShape(b.shapeSpan()) << describeShape(b.stridesSpan()) << " " << distance;
    exact += answer == shared;
    ++total;
    bool selfShared = first.size() != static_cast<size_t>(a.numel() * dtypeBytes(a.dtype));
    ASSERT_TRUE(mayOverlapItself(a) || !selfShared);
  }
  EXPECT_GT(exact, total * 9 / 10);
}

TEST(Overlap, SlicesOfOneMatrixAreApart) {
  View left = viewOf({4, 3}, {8, 1}), right = viewOf({4, 5}, {8, 1}, 3);
  EXPECT_FALSE(mayOverlap(left, right, 0));
  EXPECT_TRUE(mayOverlap(left, right, -4));
  View even = viewOf({10}, {2}), odd = viewOf({10}, {2}, 1);
  EXPECT_FALSE(mayOverlap(even, odd, 0));
  EXPECT_TRUE(mayOverlap(even, odd, 4));
  View blocks = viewOf({2, 3, 4}, {100, 10, 1}), between = viewOf({2, 3, 4}, {100, 10, 1}, 5);
  EXPECT_FALSE(mayOverlap(blocks, between, 0));
}

} // namespace
