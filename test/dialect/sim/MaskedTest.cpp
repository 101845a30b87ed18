// Tests masked products on Hopper by the simulator: peeled loops at mask boundaries give the results of the whole loop.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// Row i of %o is the sum of (q[i] . k[j] + 0 * (the maximum so far) + 1) v[j]. It includes keys j from i - %before to
/// i + %after; %keys is their number.
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @masked(%q: !in, %k: !in, %v: !in, %o: !out, %before: index, %after: index) attributes {schedule = #tile.schedule<stages = 2, peel = 1>} {
  %zero = arith.constant 0.0 : bf16
  %nothing = arith.constant dense<0.0> : tensor<128x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %ones = arith.constant dense<1.0> : tensor<128x1xf32>
  %least = arith.constant dense<-128.0> : tensor<128x1xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c127 = arith.constant 127 : index
  %c128 = arith.constant 128 : index
  %true = arith.constant true
  %rows = tile.dim %o, 0 : !out
  %keys = tile.dim %k, 0 : !in
  %tiles = arith.ceildivsi %rows, %c128 : index
  tile.for_tiles (%i) to (%tiles) {
    %m = arith.muli %i, %c128 : index
    %u = tile.load %q[%m, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %behind = arith.addi %m, %after : index
    %last = arith.addi %behind, %c128 : index
    %some = arith.minsi %last, %keys : index
    %end = arith.ceildivsi %some, %c64 : index
    %first = arith.subi %m, %before : index
    %from = arith.maxsi %first, %c0 : index
    %begin = arith.floordivsi %from, %c64 : index
    %result:2 = scf.for %n = %begin to %end step %c1 iter_args(%top = %least, %sum = %zeros) -> (tensor<128x1xf32>, tensor<128x64xf32>) {
      %key = arith.muli %n, %c64 : index
      %kj = tile.load %k[%key, %c0] fill %zero : !in -> tensor<64x64xbf16>
      %kt = tile.permute %kj [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %s = tile.dot %u, %kt, %nothing : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      %ends = arith.addi %key, %c64 : index
      %own = arith.addi %behind, %c1 : index
      %isBehind = arith.cmpi sgt, %ends, %own : index
      %masked = scf.if %isBehind -> (i1) {
        scf.yield %true : i1
      } else {
        %lowest = arith.addi %first, %c127 : index
        %isBefore = arith.cmpi slt, %key, %lowest : index
        %ragged = arith.cmpi sgt, %ends, %keys : index
        %either = arith.ori %isBefore, %ragged : i1
        scf.yield %either : i1
      }
      %t = scf.if %masked -> (tensor<128x64xf32>) {
        %rowIota = tile.iota : tensor<128xindex>
        %rowColumn = tile.reshape %rowIota : tensor<128xindex> -> tensor<128x1xindex>
        %row = tile.broadcast %rowColumn : tensor<128x1xindex> -> tensor<128x64xindex>
        %keyIota = tile.iota : tensor<64xindex>
        %keyRow = tile.reshape %keyIota : tensor<64xindex> -> tensor<1x64xindex>
        %column = tile.broadcast %keyRow : tensor<1x64xindex> -> tensor<128x64xindex>
        %ahead = arith.subi %column, %row : tensor<128x64xindex>
        %most = arith.subi %behind, %key : index
        %mostTile = tile.splat %most : index -> tensor<128x64xindex>
        %fewest = arith.subi %first, %key : index
        %fewestTile = tile.splat %fewest : index -> tensor<128x64xindex>
        %there = arith.subi %keys, %key : index
        %thereTile = tile.splat %there : index -> tensor<128x64xindex>
        %a = arith.cmpi sle, %ahead, %mostTile : tensor<128x64xindex>
        %b = arith.cmpi sge, %ahead, %fewestTile : tensor<128x64xindex>
        %c = arith.cmpi slt, %column, %thereTile : tensor<128x64xindex>
        %ab = arith.andi %a, %b : tensor<128x64xi1>
        %abc = arith.andi %ab, %c : tensor<128x64xi1>
        %kept = arith.select %abc, %s, %nothing : tensor<128x64xi1>, tensor<128x64xf32>
        scf.yield %kept : tensor<128x64xf32>
      } else {
        scf.yield %s : tensor<128x64xf32>
      }
      %high = tile.reduce max %t axis 1 : tensor<128x64xf32> -> tensor<128x1xf32>
      %new = arith.maximumf %top, %high : tensor<128x1xf32>
      %none = arith.subf %new, %new : tensor<128x1xf32>
      %one = arith.addf %none, %ones : tensor<128x1xf32>
      %keep = tile.broadcast %one : tensor<128x1xf32> -> tensor<128x64xf32>
      %p = arith.truncf %t : tensor<128x64xf32> to tensor<128x64xbf16>
      %x = arith.mulf %sum, %keep : tensor<128x64xf32>
      %vj = tile.load %v[%key, %c0] fill %zero : !in -> tensor<64x64xbf16>
      %y = tile.dot %p, %vj, %x : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %new, %y : tensor<128x1xf32>, tensor<128x64xf32>
    }
    %r = arith.truncf %result#1 : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %r, %o[%m, %c0] : tensor<128x64xbf16>, !out
  }
  tile.return
}
)";

struct Case {
  int64_t rows, keys, before, after;
};

struct Masked : ComparedTest, testing::WithParamInterface<Case> {
  /// -1, 0 and 1: sums are exact, so results are equal bit for bit.
  static std::vector<uint16_t> numbers(int64_t count, size_t seed) {
    std::vector<uint16_t> values;
    for (size_t i = seed; i < seed + size_t(count); ++i)
      values.push_back(sign(i * i));
    return values;
  }
};

TEST_P(Masked, IsRightInEveryOrder) {
  auto [rows, keys, before, after] = GetParam();
  reads(numbers(rows * 64, 1), {rows, 64});
  reads(numbers(keys * 64, 5), {keys, 64});
  reads(numbers(keys * 64, 3), {keys, 64});
  writes({rows, 64});
  takes(before);
  takes(after);
  prepare(source);
  size_t loops = 0, choices = 0;
  module->walk([&](kgpu::RolesOp roles) {
    roles.getConsumers().walk([&](scf::ForOp loop) {
      auto products = loop.getBody()->getOps<kgpu::WgmmaOp>();
      if (products.empty() || !loop.getBody()->getOps<scf::ForOp>().empty())
        return; // The loop over tiles has the first product.
      ++loops;
      choices += llvm::any_of(loop.getBody()->getOps<scf::IfOp>(),
                              [](scf::IfOp choice) { return choice.getNumResults() != 0; });
    });
  });
  EXPECT_EQ(loops, 3u);
  EXPECT_EQ(choices, 2u) << "the loop between does not ask";
  expectRight(3);
}

constexpr int64_t all = int64_t(1) << 40;
INSTANTIATE_TEST_SUITE_P(Cases, Masked,
                         testing::Values(Case{256, 320, all, all}, // All keys are visible.
                                         Case{130, 300, all, 0},   // Keys up to the own one; no row sees the last keys.
                                         Case{300, 290, 100, 0},   // A window without a middle.
                                         Case{200, 500, 199, 150}, // A window with a middle.
                                         Case{256, 10, all, all},  // Fewer keys than a block.
                                         Case{300, 100, 30, 0}));  // Rows without visible keys.

} // namespace
