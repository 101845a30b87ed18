// Products of products on Hopper through the simulator and the schedule verifier, as gradients of attention are: warpgroups that take turns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Mutations.h"
#include "SimulatedTest.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// Two sums of a tile over all rows of others, as gradients of attention are: products of products, operands that are read in two ways, a
/// row that arithmetic reads, loops within each other, warpgroups that take turns. %a and %b are [rows, 64], %r a row, %d is [columns, 64].
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!row = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @chain(%a: !in, %b: !in, %r: !row, %d: !out) attributes {schedule = {stages = 2 : i32}} {
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
struct Chain : SimulatedTest {
  static constexpr int64_t columns = 256, rows = 224;
  std::vector<uint16_t> left, right, sums, expected;
  std::vector<float> row;

  std::vector<sim::Argument> arguments() {
    return {view(left, {rows, 64}), view(right, {rows, 64}), view(row.data(), Float32Type::get(&context), {rows}), view(sums, {columns, 64})};
  }
  OwningOpRef<ModuleOp> compiled() {
    OwningOpRef<ModuleOp> module = parse(source);
    compile(*module);
    return module;
  }
  void SetUp() override {
    for (size_t i = 0; i < size_t(rows * 64); ++i) {
      left.push_back(sign(i + i / 64));
      right.push_back(sign(3 * i + i / 192));
    }
    for (size_t i = 0; i < size_t(rows); ++i)
      row.push_back(float(int64_t(i % 5) - 2));
    sums.assign(size_t(columns * 64), poison);
    ASSERT_EQ(interpret(*parse(source), arguments()), "");
    expected = sums;
  }
  std::string outcome(ModuleOp module, uint64_t seed, int64_t ctas) {
    sums.assign(sums.size(), poison);
    std::string wrong = simulate(module, arguments(), seed, ctas);
    return !wrong.empty() ? wrong : sums == expected ? "" : "the result is wrong";
  }
};

TEST_F(Chain, IsRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiled();
  size_t products = 0, turns = 0;
  module->walk([&](kgpu::WgmmaOp) { ++products; });
  module->walk([&](kgpu::AwaitTurnOp) { ++turns; });
  ASSERT_EQ(products, 4u);
  ASSERT_EQ(turns, 2u) << "one before the loop, one between its products";
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 4; ++seed)
    EXPECT_EQ(outcome(*module, seed, /*ctas=*/1 + int64_t(seed % 2)), "") << seed;
}

TEST_F(Chain, ChangesAreFound) {
  OwningOpRef<ModuleOp> module = compiled();
  // What the verifier refuses is not simulated: the chain takes long.
  bool refused = false;
  auto isRefused = [&](ModuleOp copy) { return refused = !verify(copy).empty(); };
  auto isSeen = [&](ModuleOp copy) {
    return !refused && !(outcome(copy, 0, 1).empty() && outcome(copy, 1, 1).empty());
  };
  Found found = search(*module, isRefused, isSeen);
  EXPECT_GE(found.count, 100);
  EXPECT_GE(found.either * 100, found.count * 95) << "missed:" << found.missed;
}

TEST_F(Chain, TurnsAreCounted) {
  OwningOpRef<ModuleOp> whole = compiled();
  for (size_t number = 0; number < 4; ++number) {
    OwningOpRef<ModuleOp> module = whole->clone();
    SmallVector<Operation *> turns;
    module->walk([&](Operation *op) {
      if (isa<kgpu::AwaitTurnOp, kgpu::PassTurnOp>(op))
        turns.push_back(op);
    });
    ASSERT_EQ(turns.size(), 4u);
    turns[number]->erase();
    EXPECT_NE(verify(*module), "") << number;
  }
}

} // namespace
