// Tests parts of tiles and joined tiles on Hopper, by the simulator: they go through shared memory or stay in threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"
#include <numeric>

using namespace kpkg;
using namespace mlir;

namespace {

struct Parts : ComparedTest {
  /// Runs `body`, which computes %r [rows, columns] from the loaded tile %v [16, 96].
  void run(const std::string &body, int64_t rows, int64_t columns) {
    std::vector<float> values(16 * 96);
    std::iota(values.begin(), values.end(), 1.0f);
    values[17] = -0.0f;
    reads(values, {16, 96});
    writes({rows, columns}, -7.0f);
    std::string result = "tensor<" + std::to_string(rows) + "x" + std::to_string(columns) + "xf32>";
    prepare(R"(
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 1, index = 32>
tile.kernel @parts(%x: !in, %y: !out) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<16x96xf32>
)" + body +
            "  tile.store %r, %y[%c0, %c0] : " + result + ", !out\n  tile.return\n}\n");
  }
  int64_t buffers() {
    int64_t count = 0;
    module->walk([&](kgpu::AllocOp) { ++count; });
    return count;
  }
};

TEST_F(Parts, NeighboursStayInTheirThreads) {
  run(R"(
  %a = tile.extract %v [0, 0] step [1, 2] : tensor<16x96xf32> -> tensor<16x48xf32>
  %b = tile.extract %v [0, 1] step [1, 2] : tensor<16x96xf32> -> tensor<16x48xf32>
  %c = tile.reshape %a : tensor<16x48xf32> -> tensor<16x48x1xf32>
  %d = tile.reshape %b : tensor<16x48xf32> -> tensor<16x48x1xf32>
  %e = tile.join %d, %c axis 2 : tensor<16x48x1xf32>, tensor<16x48x1xf32> -> tensor<16x48x2xf32>
  %r = tile.reshape %e : tensor<16x48x2xf32> -> tensor<16x96xf32>
)",
      16, 96);
  expectRight(2, {1});
}

TEST_F(Parts, ReversedElementsGoThroughSharedMemory) {
  run(R"(
  %r = tile.extract %v [15, 95] step [-1, -1] : tensor<16x96xf32> -> tensor<16x96xf32>
)",
      16, 96);
  EXPECT_GE(buffers(), 1);
  expectRight(4, {1});
}

TEST_F(Parts, AnyPartsAreJoined) {
  run(R"(
  %a = tile.extract %v [0, 91] step [1, 1] : tensor<16x96xf32> -> tensor<16x5xf32>
  %b = tile.extract %v [0, 0] step [1, 1] : tensor<16x96xf32> -> tensor<16x91xf32>
  %c = tile.join %a, %b axis 1 : tensor<16x5xf32>, tensor<16x91xf32> -> tensor<16x96xf32>
  %r = arith.addf %c, %v : tensor<16x96xf32>
)",
      16, 96);
  EXPECT_GE(buffers(), 1);
  expectRight(4, {1});
}

TEST_F(Parts, LoopsCarryJoinedTiles) {
  run(R"(
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%w = %v) -> tensor<16x96xf32> {
    %a = tile.extract %w [0, 48] step [1, 1] : tensor<16x96xf32> -> tensor<16x48xf32>
    %b = tile.extract %w [0, 1] step [1, 2] : tensor<16x96xf32> -> tensor<16x48xf32>
    %n = tile.join %b, %a axis 1 : tensor<16x48xf32>, tensor<16x48xf32> -> tensor<16x96xf32>
    scf.yield %n : tensor<16x96xf32>
  }
)",
      16, 96);
  expectRight(4, {1});
}

} // namespace
