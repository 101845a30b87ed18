// Tests products with packed weights of 4 bits on Hopper by the simulator: producers copy words, consumers unpack them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace kpkg;
using namespace mlir;

namespace {
/// Computes %y [lines, rows] = %x [lines, depth] @ w.T. A row of %q has the 4-bit numbers of 64 columns of w, in the
/// order of the threads that multiply. Rows of w have a scale for each such step. Places are computed after the first
/// load, as authors write them.
constexpr const char *source = R"(
!q = !tile.view<2xi32, unit = 1, align = 16, divisible = 8, index = 32>
!words = !tile.view<1xi32, unit = 0, align = 16, divisible = 8, index = 32>
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!row = !tile.view<1xbf16, unit = 0, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @packed(%q: !q, %s: !in, %x: !in, %y: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant 0 : i32
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c1024 = arith.constant 1024 : index
  %rows = tile.dim %s, 1 : !in
  %lines = tile.dim %x, 0 : !in
  %depth = tile.dim %x, 1 : !in
  %tn = arith.ceildivsi %rows, %c128 : index
  %tm = arith.ceildivsi %lines, %c64 : index
  %tk = arith.ceildivsi %depth, %c64 : index
  tile.for_tiles (%i, %j) to (%tn, %tm) {
    %sum = scf.for %k = %c0 to %tk step %c1 iter_args(%acc = %zeros) -> tensor<128x64xf32> {
      %line = tile.drop %q [0] at(%k) : !q -> !words
      %first = arith.muli %i, %c1024 : index
      %w = tile.load %line[%first] fill %none : !words -> tensor<1024xi32>
      %v = tile.unpack %w signed bits 4 : tensor<1024xi32> -> tensor<8192xbf16>
      %parts = tile.reshape %v : tensor<8192xbf16> -> tensor<8x8x4x4x2x2x2xbf16>
      %order = tile.permute %parts [0, 6, 1, 3, 5, 2, 4] : tensor<8x8x4x4x2x2x2xbf16> -> tensor<8x2x8x4x2x4x2xbf16>
      %numbers = tile.reshape %order : tensor<8x2x8x4x2x4x2xbf16> -> tensor<128x64xbf16>
      %own = tile.drop %s [0] at(%k) : !in -> !row
      %n = arith.muli %i, %c128 : index
      %scale = tile.load %own[%n] fill %zero : !row -> tensor<128xbf16>
      %column = tile.reshape %scale : tensor<128xbf16> -> tensor<128x1xbf16>
      %all = tile.broadcast %column : tensor<128x1xbf16> -> tensor<128x64xbf16>
      %a = arith.mulf %numbers, %all : tensor<128x64xbf16>
      %m = arith.muli %j, %c64 : index
      %k0 = arith.muli %k, %c64 : index
      %t = tile.load %x[%m, %k0] fill %zero : !in -> tensor<64x64xbf16>
      %b = tile.permute %t [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
      %next = tile.dot %a, %b, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %next : tensor<128x64xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    %back = tile.permute %narrow [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
    %at0 = arith.muli %j, %c64 : index
    %at1 = arith.muli %i, %c128 : index
    tile.store %back, %y[%at0, %at1] : tensor<64x128xbf16>, !out
  }
  tile.return
}
)";

struct PackedProduct : SimulatedTest {};

TEST_F(PackedProduct, IsRightInEveryOrder) {
  constexpr int64_t rows = 144, lines = 72, depth = 192, steps = 3;
  std::vector<int32_t> q;
  for (uint32_t i = 0; i < uint32_t(steps * rows * 8); ++i)
    q.push_back(int32_t((i * i * 2654435761u) ^ (i * 40503u)));
  std::vector<uint16_t> s = wholeNumbers(steps * rows, 3), x = wholeNumbers(lines * depth, 7), y(lines * rows, poison);
  std::vector<sim::Argument> arguments = {view(q.data(), IntegerType::get(&context, 32), {steps, rows * 8}),
                                          view(s, {steps, rows}), view(x, {lines, depth}), view(y, {lines, rows})};
  OwningOpRef<ModuleOp> module = parse(source);
  ASSERT_EQ(interpret(*module, arguments), "");
  std::vector<uint16_t> expected = y;

  // Shifts and masks give the same result.
  OwningOpRef<ModuleOp> shifts = module->clone();
  PassManager expansion(&context);
  expansion.addNestedPass<tile::KernelOp>(tile::createTileExpandUnpacks());
  ASSERT_TRUE(succeeded(expansion.run(*shifts)));
  y.assign(y.size(), poison);
  ASSERT_EQ(interpret(*shifts, arguments), "");
  EXPECT_EQ(y, expected);

  compile(*module);
  size_t copied = 0, moved = 0;
  module->walk([&](kgpu::LocalLoadOp) { ++copied; });
  module->walk([&](kgpu::CvtLayoutOp) { ++moved; });
  EXPECT_EQ(copied, 2u); // words and scales
  EXPECT_EQ(moved, 0u);
  for (uint64_t seed : {1, 2, 3}) {
    y.assign(y.size(), poison);
    ASSERT_EQ(simulate(*module, arguments, seed, 2), "");
    EXPECT_EQ(y, expected) << "seed " << seed;
  }
}
} // namespace
