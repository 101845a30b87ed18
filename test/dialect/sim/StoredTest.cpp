// Tests tiles that each iteration of a loop of products stores on Hopper, by the simulator and the schedule verifier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// %a and %b are [rows, 64], %p and %e are [columns, rows], %d is [columns, 64]. Stores to %p and %e have rows of 64
/// bytes; stores to %d have longer ones.
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @stored(%a: !in, %b: !in, %p: !out, %e: !out, %d: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %none = arith.constant dense<0.0> : tensor<128x32xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %a, 0 : !in
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  %tm = arith.ceildivsi %rows, %c32 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %sum = scf.for %j = %i to %tm step %c1 iter_args(%x = %zeros) -> tensor<128x64xf32> {
      %m = arith.muli %j, %c32 : index
      %q = tile.load %a[%m, %c0] fill %zero : !in -> tensor<32x64xbf16>
      %g = tile.load %b[%m, %c0] fill %zero : !in -> tensor<32x64xbf16>
      %qt = tile.permute %q [1, 0] : tensor<32x64xbf16> -> tensor<64x32xbf16>
      %gt = tile.permute %g [1, 0] : tensor<32x64xbf16> -> tensor<64x32xbf16>
      %s = tile.dot %k, %qt, %none : tensor<128x64xbf16>, tensor<64x32xbf16>, tensor<128x32xf32>
      %t = tile.dot %k, %gt, %none : tensor<128x64xbf16>, tensor<64x32xbf16>, tensor<128x32xf32>
      %change = arith.subf %s, %t : tensor<128x32xf32>
      %narrow = arith.truncf %s : tensor<128x32xf32> to tensor<128x32xbf16>
      %less = arith.truncf %change : tensor<128x32xf32> to tensor<128x32xbf16>
      tile.store %narrow, %p[%n, %m] : tensor<128x32xbf16>, !out
      tile.store %less, %e[%n, %m] : tensor<128x32xbf16>, !out
      %x1 = tile.dot %less, %q, %x : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      scf.yield %x1 : tensor<128x64xf32>
    }
    %result = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %result, %d[%n, %c0] : tensor<128x64xbf16>, !out
  }
  tile.return
}
)";

struct Stored : ComparedTest {
  void SetUp() override {
    constexpr int64_t columns = 256, rows = 224;
    reads(signs(rows * 64, 1, 64), {rows, 64});
    reads(signs(rows * 64, 3, 192), {rows, 64});
    writes({columns, rows});
    writes({columns, rows});
    writes({columns, 64});
    prepare(source);
  }
};

TEST_F(Stored, IsRightInEveryOrder) {
  SmallVector<Value> stagings;
  module->walk([&](kgpu::TensorStoreOp store) { stagings.push_back(store.getStaging()); });
  ASSERT_EQ(stagings.size(), 3u);
  EXPECT_TRUE(llvm::all_equal(stagings)) << "all in panels as narrow as those of the loop";
  expectRight(4);
}

TEST_F(Stored, ChangesAreFound) { expectFound(80, /*runs=*/2, /*ctas=*/1, /*sparesRefused=*/true); }

} // namespace
