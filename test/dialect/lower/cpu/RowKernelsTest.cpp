// Tests row kernels on the CPU (elementwise, softmax, norms, columns) with rows of many lengths.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/dialect/lower/cpu/CompiledKernels.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace kpkg::test;

static std::vector<float> randomFloats(size_t count, unsigned seed = 1) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float &value : values)
    value = normal(engine);
  return values;
}

static std::string softmax(const std::string &unit, int cols, bool log = false) {
  std::string row = "tensor<1x" + std::to_string(cols) + "xf32>", view = "!tile.view<2xf32" + unit + ">";
  std::string out = "!tile.view<2xf32, mut" + unit + ">";
  std::string tail = log ? "%l = math.log %s : tensor<1x1xf32>\n"
                           "%lb = tile.broadcast %l : tensor<1x1xf32> -> " +
                               row +
                               "\n"
                               "%r = arith.subf %d, %lb : " +
                               row
                         : "%sb = tile.broadcast %s : tensor<1x1xf32> -> " + row +
                               "\n"
                               "%r = arith.divf %e, %sb : " +
                               row;
  return "tile.kernel @softmax(%x: " + view + ", %y: " + out +
         ") {\n"
         "%inf = arith.constant 0xFF800000 : f32\n %c0 = arith.constant 0 : index\n %row = tile.block_id x\n"
         "%v = tile.load %x[%row, %c0] fill %inf : " +
         view + " -> " + row +
         "\n"
         "%m = tile.reduce max %v axis 1 : " +
         row +
         " -> tensor<1x1xf32>\n"
         "%mb = tile.broadcast %m : tensor<1x1xf32> -> " +
         row +
         "\n"
         "%d = arith.subf %v, %mb : " +
         row + "\n %e = math.exp %d : " + row +
         "\n"
         "%s = tile.reduce sum %e axis 1 : " +
         row + " -> tensor<1x1xf32>\n" + tail +
         "\n"
         "tile.store %r, %y[%row, %c0] : " +
         row + ", " + out + "\n tile.return }";
}

static void checkSoftmax(CompiledKernels &kernels, int64_t n, int64_t stride, bool log) {
  constexpr int64_t rows = 11, blocks = 10; // More rows than a batch, and a row without a block.
  std::vector<float> x = randomFloats(rows * (n + 7) * stride), y(x.size(), 77.0f);
  Arguments arguments;
  std::vector<int64_t> strides = {(n + 7) * stride, stride};
  arguments.view(x.data(), {rows, n}, strides).view(y.data(), {rows, n}, strides);
  ASSERT_EQ(kernels.run("softmax", arguments, {blocks}), 0);
  for (int64_t i = 0; i < n; ++i)
    ASSERT_EQ(y[blocks * strides[0] + i * stride], 77.0f) << "written beyond the grid";
  for (int64_t row = 0; row < blocks; ++row) {
    const float *in = &x[row * strides[0]];
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i)
      top = std::max<double>(top, in[i * stride]);
    for (int64_t i = 0; i < n; ++i)
      sum += std::exp(in[i * stride] - top);
    for (int64_t i = 0; i < n; ++i) {
      double want = log ? in[i * stride] - top - std::log(sum) : std::exp(in[i * stride] - top) / sum;
      ASSERT_NEAR(y[row * strides[0] + i * stride], want, 2e-6 * std::max(1.0, std::abs(want)))
          << "n " << n << " at " << i;
    }
    for (int64_t i = n; i < n + 7; ++i)
      ASSERT_EQ(y[row * strides[0] + i * stride], 77.0f) << "written beyond the row";
  }
}

TEST(RowKernels, Softmax) {
  CompiledKernels kernels(softmax(", unit = 1", 1024));
  for (int64_t n : {1, 7, 8, 9, 31, 32, 33, 100, 1000, 1023, 1024})
    checkSoftmax(kernels, n, 1, false);
  EXPECT_LE(kernels.kernel("softmax").scratchBytes, 4 * 1024 * 4 + 256); // A batch has 4 rows.
}

TEST(RowKernels, BatchesEndWithTheirLineOfTheGrid) {
  CompiledKernels kernels(R"(
    tile.kernel @centred(%x: !tile.view<3xf32, unit = 2>, %y: !tile.view<3xf32, mut, unit = 2>) {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %row = tile.block_id x
      %plane = tile.block_id y
      %v = tile.load %x[%plane, %row, %c0] fill %zero : !tile.view<3xf32, unit = 2> -> tensor<1x1x64xf32>
      %s = tile.reduce sum %v axis 2 : tensor<1x1x64xf32> -> tensor<1x1x1xf32>
      %sb = tile.broadcast %s : tensor<1x1x1xf32> -> tensor<1x1x64xf32>
      %d = arith.subf %v, %sb : tensor<1x1x64xf32>
      tile.store %d, %y[%plane, %row, %c0] : tensor<1x1x64xf32>, !tile.view<3xf32, mut, unit = 2>
      tile.return
    })");
  constexpr int64_t planes = 3, rows = 13, n = 5;
  std::vector<float> x(planes * rows * n), y(x.size());
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i);
  Arguments arguments;
  arguments.view(x.data(), {planes, rows, n}).view(y.data(), {planes, rows, n});
  ASSERT_EQ(kernels.run("centred", arguments, {rows, planes}), 0);
  for (int64_t i = 0; i < planes * rows * n; ++i)
    EXPECT_EQ(y[i], x[i] - (5 * x[i / n * n] + 10)) << i;
}

TEST(RowKernels, SoftmaxStrided) {
  CompiledKernels kernels(softmax("", 256));
  for (int64_t n : {1, 9, 32, 100, 256})
    for (int64_t stride : {1, 3})
      checkSoftmax(kernels, n, stride, false);
}

TEST(RowKernels, LogSoftmax) {
  CompiledKernels kernels(softmax(", unit = 1", 1024, true));
  for (int64_t n : {1, 9, 33, 1000, 1024})
    checkSoftmax(kernels, n, 1, true);
}

TEST(RowKernels, SoftmaxKeepsNaNAndInfinity) {
  CompiledKernels kernels(softmax(", unit = 1", 64));
  for (int64_t at : {0, 5, 20}) {
    std::vector<float> x(21, 1.0f), y(21);
    x[at] = NAN;
    kernels.run("softmax", Arguments().view(x.data(), {1, 21}).view(y.data(), {1, 21}), {1});
    for (float value : y)
      EXPECT_TRUE(std::isnan(value));
    x.assign(21, -INFINITY);
    x[at] = 3;
    kernels.run("softmax", Arguments().view(x.data(), {1, 21}).view(y.data(), {1, 21}), {1});
    for (int64_t i = 0; i < 21; ++i)
      EXPECT_EQ(y[i], i == at ? 1.0f : 0.0f);
  }
}

TEST(RowKernels, AssertAndPrint) {
  CompiledKernels kernels(R"(
    tile.kernel @checked(%x: !tile.view<1xf32>, %limit: f32) {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      %id = tile.block_id x
      %v = tile.load %x[%c0] fill %zero : !tile.view<1xf32> -> tensor<3xf32>
      tile.print "block {} has {} below {}" (%id, %v, %limit) : index, tensor<3xf32>, f32
      %ok = arith.cmpf ole, %zero, %limit : f32
      tile.assert %ok, "the limit is negative" : i1
      %limits = tile.splat %limit : f32 -> tensor<3xf32>
      %below = arith.cmpf olt, %v, %limits : tensor<3xf32>
      tile.assert %below, "too large" : tensor<3xi1>
      tile.return
    })");
  std::vector<float> x = {1, 2, 3};
  EXPECT_EQ(kernels.run("checked", Arguments().view(x.data(), {3}).scalar(4.0f), {2}), 0);
  EXPECT_EQ(kernels.kernel("checked").prints,
            std::vector<std::string>{"block {i64} has [{f32} {f32} {f32}] below {f32}"});
  EXPECT_EQ(kernels.kernel("checked").asserts, (std::vector<std::string>{"the limit is negative", "too large"}));
  ASSERT_EQ(kernels.printed.size(), 2u);
  EXPECT_EQ(kernels.printed[1], (std::vector<uint64_t>{0, 1, 0x3f800000, 0x40000000, 0x40400000, 0x40800000}));
  EXPECT_EQ(kernels.run("checked", Arguments().view(x.data(), {3}).scalar(-1.0f)), 1);
  EXPECT_EQ(kernels.run("checked", Arguments().view(x.data(), {3}).scalar(2.5f)), 2);
}

TEST(RowKernels, AbsentViewsLoadTheFill) {
  CompiledKernels kernels(R"(
    tile.kernel @add(%x: !tile.view<1xf32, unit = 0>, %bias: !tile.view<1xf32, unit = 0>, %s: !tile.view<0xf32>,
                     %y: !tile.view<1xf32, mut, unit = 0>, %z: !tile.view<1xf32, mut, unit = 0>) {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      %v = tile.load %x[%c0] fill %one : !tile.view<1xf32, unit = 0> -> tensor<40xf32>
      %b = tile.load %bias[%c0] fill %one : !tile.view<1xf32, unit = 0> -> tensor<40xf32>
      %t = tile.load %s[] fill %one : !tile.view<0xf32> -> f32
      %ts = tile.splat %t : f32 -> tensor<40xf32>
      %vb = arith.addf %v, %b : tensor<40xf32>
      %r = arith.addf %vb, %ts : tensor<40xf32>
      tile.store %r, %y[%c0] : tensor<40xf32>, !tile.view<1xf32, mut, unit = 0>
      tile.store %r, %z[%c0] : tensor<40xf32>, !tile.view<1xf32, mut, unit = 0>
      tile.return
    })");
  std::vector<float> x(40, 3.0f), y(40);
  float *none = nullptr;
  Arguments arguments;
  arguments.view(x.data(), {40}).view(none, {0}, {0}).scalar(int64_t(0)).view(y.data(), {40}).view(none, {0}, {0});
  ASSERT_EQ(kernels.run("add", arguments), 0);
  for (float value : y)
    EXPECT_EQ(value, 5.0f);
}
