// Tests chained products with ping-pong warpgroups on Hopper, like attention gradients, by simulator and verifier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// Computes two sums of a tile over all rows of other tensors, like the gradients of attention. The kernel has products
/// of products, operands that are read in two orientations, a row that arithmetic reads, nested loops, and ping-pong
/// warpgroups. %a and %b are [rows, 64], %r is a row, %d is [columns, 64].
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!row = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @chain(%a: !in, %b: !in, %r: !row, %d: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %nought = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %a, 0 : !in
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  %tm = arith.ceildivsi %rows, %c64 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %sums:2 = scf.for %h = %c0 to %c2 step %c1 iter_args(%x0 = %zeros, %y0 = %zeros) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
      %first = arith.addi %i, %h : index
      %inner:2 = scf.for %j = %first to %tm step %c1 iter_args(%x = %x0, %y = %y0) -> (tensor<128x64xf32>, tensor<128x64xf32>) {
        %m = arith.muli %j, %c64 : index
        %q = tile.load %a[%m, %c0] fill %zero : !in -> tensor<64x64xbf16>
        %g = tile.load %b[%m, %c0] fill %zero : !in -> tensor<64x64xbf16>
        %qt = tile.permute %q [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
        %gt = tile.permute %g [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
        %s = tile.dot %k, %qt, %none : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        %t = tile.dot %k, %gt, %none : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        %row = tile.load %r[%m] fill %nought : !row -> tensor<64xf32>
        %flat = tile.reshape %row : tensor<64xf32> -> tensor<1x64xf32>
        %wide = tile.broadcast %flat : tensor<1x64xf32> -> tensor<128x64xf32>
        %p = arith.addf %s, %wide : tensor<128x64xf32>
        %e = arith.subf %p, %t : tensor<128x64xf32>
        %pn = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
        %en = arith.truncf %e : tensor<128x64xf32> to tensor<128x64xbf16>
        %x1 = tile.dot %pn, %g, %x : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        %y1 = tile.dot %en, %q, %y : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
        scf.yield %x1, %y1 : tensor<128x64xf32>, tensor<128x64xf32>
      }
      scf.yield %inner#0, %inner#1 : tensor<128x64xf32>, tensor<128x64xf32>
    }
    %both = arith.subf %sums#0, %sums#1 : tensor<128x64xf32>
    %narrow = arith.truncf %both : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %narrow, %d[%n, %c0] : tensor<128x64xbf16>, !out
  }
  tile.return
}
)";

/// The chain of products.
struct Chain : ComparedTest {
  void SetUp() override {
    constexpr int64_t columns = 256, rows = 224;
    reads(signs(rows * 64, 1, 64), {rows, 64});
    reads(signs(rows * 64, 3, 192), {rows, 64});
    std::vector<float> row;
    for (int64_t i = 0; i < rows; ++i)
      row.push_back(float(i % 5 - 2));
    reads(row, {rows});
    writes({columns, 64});
    prepare(source);
  }
};

TEST_F(Chain, IsRightInEveryOrder) {
  size_t products = 0, turns = 0;
  module->walk([&](kgpu::WgmmaOp) { ++products; });
  module->walk([&](kgpu::PingPongWaitOp) { ++turns; });
  ASSERT_EQ(products, 4u);
  ASSERT_EQ(turns, 2u) << "one before the loop, one between its products";
  expectRight(4);
}

TEST_F(Chain, ChangesAreFound) { expectFound(100, /*runs=*/2, /*ctas=*/1, /*sparesRefused=*/true); }

TEST_F(Chain, TurnsAreCounted) {
  for (size_t number = 0; number < 4; ++number) {
    OwningOpRef<ModuleOp> copy = module->clone();
    SmallVector<Operation *> turns;
    copy->walk([&](Operation *op) {
      if (isa<kgpu::PingPongWaitOp, kgpu::PingPongSignalOp>(op))
        turns.push_back(op);
    });
    ASSERT_EQ(turns.size(), 4u);
    turns[number]->erase();
    EXPECT_NE(verify(*copy), "") << number;
  }
}

} // namespace
