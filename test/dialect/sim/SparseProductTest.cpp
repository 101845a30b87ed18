// Tests 2:4 sparse products on Hopper by the simulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace kpkg;
using namespace mlir;

namespace {
/// Computes %y [lines, rows] = %x [lines, depth] @ w.T. %w [rows, depth / 2] and %p hold the kept elements of the 2:4
/// sparse w and their positions. The transpose of the result is accumulated.
constexpr const char *source = R"(
!w = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!p = !tile.view<3xi16, unit = 2, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @sparse(%w: !w, %p: !p, %x: !w, %y: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %nought = arith.constant 0 : i16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %w, 0 : !w
  %lines = tile.dim %x, 0 : !w
  %depth = tile.dim %x, 1 : !w
  %tn = arith.ceildivsi %rows, %c128 : index
  %tm = arith.ceildivsi %lines, %c64 : index
  %tk = arith.ceildivsi %depth, %c128 : index
  tile.for_tiles (%i, %j) to (%tn, %tm) {
    %n = arith.muli %i, %c128 : index
    %b = arith.muli %i, %c2 : index
    %m = arith.muli %j, %c64 : index
    %sum = scf.for %k = %c0 to %tk step %c1 iter_args(%s = %zeros) -> tensor<128x64xf32> {
      %k0 = arith.muli %k, %c64 : index
      %k1 = arith.muli %k, %c128 : index
      %words = tile.load %p[%b, %k, %c0] fill %nought : !p -> tensor<2x1x512xi16>
      %split = tile.reshape %words : tensor<2x1x512xi16> -> tensor<2x4x8x4x2x2xi16>
      %turned = tile.permute %split [0, 1, 5, 2, 4, 3] : tensor<2x4x8x4x2x2xi16> -> tensor<2x4x2x8x2x4xi16>
      %at = tile.reshape %turned : tensor<2x4x2x8x2x4xi16> -> tensor<128x8xi16>
      %a = tile.load %w[%n, %k0] fill %zero : !w -> tensor<128x64xbf16>
      %r = tile.load %x[%m, %k1] fill %zero : !w -> tensor<64x128xbf16>
      %t = tile.permute %r [1, 0] : tensor<64x128xbf16> -> tensor<128x64xbf16>
      %next = tile.dot %a, %t, %s at %at : tensor<128x64xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>, tensor<128x8xi16>
      scf.yield %next : tensor<128x64xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    %back = tile.permute %narrow [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
    tile.store %back, %y[%m, %n] : tensor<64x128xbf16>, !out
  }
  tile.return
}
)";

struct SparseProduct : SimulatedTest {
  static std::vector<uint16_t> places(int64_t count) {
    constexpr uint16_t pairs[] = {0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110};
    std::vector<uint16_t> words;
    for (size_t i = 0; i < size_t(count); ++i)
      words.push_back(uint16_t(pairs[i % 6] | pairs[i / 6 % 6] << 4 | pairs[i * i % 6] << 8 | pairs[i % 5] << 12));
    return words;
  }
};

TEST_F(SparseProduct, IsRightInEveryOrder) {
  constexpr int64_t rows = 136, lines = 72, depth = 264, steps = 3;
  std::vector<uint16_t> w = wholeNumbers(rows * depth / 2, 1), p = places(3 * steps * 512),
                        x = wholeNumbers(lines * depth, 7), y(lines * rows, poison);
  std::vector<sim::Argument> arguments = {view(w, {rows, depth / 2}),
                                          view(p.data(), IntegerType::get(&context, 16), {3, steps, 512}),
                                          view(x, {lines, depth}), view(y, {lines, rows})};
  OwningOpRef<ModuleOp> module = parse(source);
  ASSERT_EQ(interpret(*module, arguments), "");
  std::vector<uint16_t> expected = y;

  // Dense ops give the same result.
  OwningOpRef<ModuleOp> dense = module->clone();
  PassManager expansion(&context);
  expansion.addNestedPass<tile::KernelOp>(tile::createTileDensifyDots());
  ASSERT_TRUE(succeeded(expansion.run(*dense)));
  y.assign(y.size(), poison);
  ASSERT_EQ(interpret(*dense, arguments), "");
  EXPECT_EQ(y, expected);

  compile(*module);
  size_t products = 0, stores = 0;
  module->walk([&](kgpu::WgmmaOp product) { products += bool(product.getPositions()); });
  module->walk([&](kgpu::TensorStoreOp) { ++stores; });
  EXPECT_EQ(products, 1u);
  EXPECT_EQ(stores, 1u);
  for (uint64_t seed : {1, 2, 3}) {
    y.assign(y.size(), poison);
    ASSERT_EQ(simulate(*module, arguments, seed, 2), "");
    EXPECT_EQ(y, expected) << "seed " << seed;
  }
}
} // namespace
