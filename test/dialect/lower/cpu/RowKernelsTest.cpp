// Row kernels on the CPU: elementwise, softmax, norms, columns; rows of all kinds of lengths.
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
                           "%lb = tile.broadcast %l : tensor<1x1xf32> -> " + row + "\n"
                           "%r = arith.subf %d, %lb : " + row
                         : "%sb = tile.broadcast %s : tensor<1x1xf32> -> " + row + "\n"
                           "%r = arith.divf %e, %sb : " + row;
  return "tile.kernel @softmax(%x: " + view + ", %y: " + out + ") {\n"
         "%inf = arith.constant 0xFF800000 : f32\n %c0 = arith.constant 0 : index\n %row = tile.block_id x\n"
         "%v = tile.load %x[%row, %c0] fill %inf : " + view + " -> " + row + "\n"
         "%m = tile.reduce max %v axis 1 : " + row + " -> tensor<1x1xf32>\n"
         "%mb = tile.broadcast %m : tensor<1x1xf32> -> " + row + "\n"
         "%d = arith.subf %v, %mb : " + row + "\n %e = math.exp %d : " + row + "\n"
         "%s = tile.reduce sum %e axis 1 : " + row + " -> tensor<1x1xf32>\n" + tail + "\n"
         "tile.store %r, %y[%row, %c0] : " + row + ", " + out + "\n tile.return }";
}

static void checkSoftmax(CompiledKernels &kernels, int64_t n, int64_t stride, bool log) {
  constexpr int64_t rows = 3;
  std::vector<float> x = randomFloats(rows * (n + 7) * stride), y(x.size(), 77.0f);
  Arguments arguments;
  std::vector<int64_t> strides = {(n + 7) * stride, stride};
  arguments.view(x.data(), {rows, n}, strides).view(y.data(), {rows, n}, strides);
  ASSERT_EQ(kernels.run("softmax", arguments, {rows}), 0);
  for (int64_t row = 0; row < rows; ++row) {
    const float *in = &x[row * strides[0]];
    double top = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; ++i)
      top = std::max<double>(top, in[i * stride]);
    for (int64_t i = 0; i < n; ++i)
      sum += std::exp(in[i * stride] - top);
    for (int64_t i = 0; i < n; ++i) {
      double want = log ? in[i * stride] - top - std::log(sum) : std::exp(in[i * stride] - top) / sum;
      ASSERT_NEAR(y[row * strides[0] + i * stride], want, 2e-6 * std::max(1.0, std::abs(want))) << "n " << n << " at " << i;
    }
    for (int64_t i = n; i < n + 7; ++i)
      ASSERT_EQ(y[row * strides[0] + i * stride], 77.0f) << "written beyond the row";
  }
}

TEST(RowKernels, Softmax) {
  CompiledKernels kernels(softmax(", unit = 1", 1024));
  for (int64_t n : {1, 7, 8, 9, 31, 32, 33, 100, 1000, 1023, 1024})
    checkSoftmax(kernels, n, 1, false);
  EXPECT_LE(kernels.kernel("softmax").scratchBytes, 1024 * 4 + 128);
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
