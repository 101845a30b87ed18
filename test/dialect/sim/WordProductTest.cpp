// Tests f32 products whose left operand consumers load from shared memory, by the simulator and the schedule verifier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// Two tiles of rows and three steps of depth (the last ones partial), two slots.
constexpr int64_t rows = 160, depth = 72, columns = 64;
constexpr const char *source = R"(
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
tile.kernel @product(%x: !in, %w: !in, %y: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %columns = tile.dim %y, 0 : !out
  %rows = tile.dim %y, 1 : !out
  %depth = tile.dim %x, 0 : !in
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c64 : index
  %tk = arith.ceildivsi %depth, %c32 : index
  tile.for_tiles (%j, %i) to (%tn, %tm) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c64 : index
    %sum = scf.for %s = %c0 to %tk step %c1 iter_args(%acc = %zeros) -> tensor<128x64xf32> {
      %k = arith.muli %s, %c32 : index
      %u = tile.load %x[%k, %m] fill %zero : !in -> tensor<32x128xf32>
      %v = tile.load %w[%n, %k] fill %zero : !in -> tensor<64x32xf32>
      %left = tile.permute %u [1, 0] : tensor<32x128xf32> -> tensor<128x32xf32>
      %right = tile.permute %v [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
      %p = tile.dot %left, %right, %acc precision tf32 : tensor<128x32xf32>, tensor<32x64xf32>, tensor<128x64xf32>
      scf.yield %p : tensor<128x64xf32>
    }
    %r = tile.permute %sum [1, 0] : tensor<128x64xf32> -> tensor<64x128xf32>
    tile.store %r, %y[%n, %m] : tensor<64x128xf32>, !out
  }
  tile.return
}
)";

struct WordProduct : ComparedTest {
  void SetUp() override {
    std::vector<float> x, w;
    for (int64_t i = 0; i < depth * rows; ++i)
      x.push_back(float((i * i + 3 * i) % 5 - 2));
    for (int64_t i = 0; i < columns * depth; ++i)
      w.push_back(float((i * 3 + i / 64) % 5 - 2));
    reads(x, {depth, rows});
    reads(w, {columns, depth});
    writes({columns, rows}, /*before=*/NAN);
    prepare(source);
  }
};

TEST_F(WordProduct, IsRightInEveryOrder) {
  EXPECT_EQ(kgpu::getLaunch(kernelOf(*module)).consumers, 2u);
  bool readsRegisters = false;
  module->walk([&](kgpu::WgmmaOp product) { readsRegisters |= isa<RankedTensorType>(product.getLhs().getType()); });
  EXPECT_TRUE(readsRegisters);
  expectRight(6, {1});
  EXPECT_EQ(outcome(*module, 0, /*ctas=*/2), "");
}

TEST_F(WordProduct, ChangesAreFound) {
  Found found = expectFound(40, /*runs=*/3, /*ctas=*/1);
  EXPECT_GE(found.simulated * 100, found.count * 80);
}

} // namespace
