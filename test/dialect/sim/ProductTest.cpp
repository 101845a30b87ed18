// Tests a product on Hopper by the simulator and the schedule verifier: the compiled kernel is right, each mutation is
// found.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// Two tiles of rows (the last one partial), three steps of depth, two slots.
constexpr int64_t rows = 160, depth = 160;
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @product(%a: !in, %b: !in, %d: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %d, 0 : !out
  %columns = tile.dim %d, 1 : !out
  %depth = tile.dim %a, 1 : !in
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c64 : index
  %tk = arith.ceildivsi %depth, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c64 : index
    %sum = scf.for %s = %c0 to %tk step %c1 iter_args(%acc = %zeros) -> tensor<128x64xf32> {
      %k = arith.muli %s, %c64 : index
      %x = tile.load %a[%m, %k] fill %zero : !in -> tensor<128x64xbf16>
      %y = tile.load %b[%k, %n] fill %zero : !in -> tensor<64x64xbf16>
      %p = tile.dot %x, %y, %acc : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
      scf.yield %p : tensor<128x64xf32>
    }
    %r = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %r, %d[%m, %n] : tensor<128x64xbf16>, !out
  }
  tile.return
}
)";

struct Schedule : ComparedTest {
  int64_t columns = 64, tileRows = 128, cluster = 1;

  void SetUp() override {
    std::vector<uint16_t> a, b;
    for (size_t i = 0; i < size_t(rows * depth); ++i)
      a.push_back(wholeNumber(i * i + 3 * i));
    for (size_t i = 0; i < size_t(depth * columns); ++i)
      b.push_back(wholeNumber(i * 3 + i / 64));
    reads(a, {rows, depth});
    reads(b, {depth, columns});
    writes({rows, columns});
    std::string text(source);
    for (size_t at = 0; (at = text.find("128", at)) != std::string::npos; at += 3)
      text.replace(at, 3, std::to_string(tileRows));
    text.insert(text.find("stages ="), cluster > 1 ? "cluster = " + std::to_string(cluster) + ", " : "");
    prepare(text);
  }

  /// Expects that the verifier or the simulator finds mutations of the kernel, most of them the latter.
  void expectSimulated(int64_t ctas) {
    Found found = expectFound(40, /*runs=*/3, ctas);
    EXPECT_GE(found.simulated * 100, found.count * 85);
  }
};

TEST_F(Schedule, IsRightInEveryOrder) {
  ASSERT_TRUE(module->walk([](kgpu::RolesOp) { return WalkResult::interrupt(); }).wasInterrupted())
      << "the kernel has no roles";
  expectRight(6, {1});
  EXPECT_EQ(outcome(*module, 0, /*ctas=*/2), "");
  EXPECT_EQ(outcome(*module, 1, /*ctas=*/3), "") << "a CTA without work";
}

TEST_F(Schedule, ChangesAreFound) { expectSimulated(/*ctas=*/1); }

/// The same product in tiles of 192 rows, a third for each of three warpgroups. The last warpgroup has no rows in one
/// tile.
struct ThreeWarpgroups : Schedule {
  ThreeWarpgroups() { tileRows = 192; }
};

TEST_F(ThreeWarpgroups, AreRightInEveryOrder) {
  EXPECT_EQ(kgpu::getLaunch(kernelOf(*module)).consumers, 3u);
  expectRight(6, {1});
}

TEST_F(ThreeWarpgroups, ChangesAreFound) { expectSimulated(/*ctas=*/1); }

/// The same product with multicast of %a in pairs of CTAs. Tiles of the last pair lie partly outside.
struct ClusterSchedule : Schedule {
  ClusterSchedule() {
    columns = 160;
    cluster = 2;
  }
};

TEST_F(ClusterSchedule, IsRightInEveryOrder) {
  size_t shared = 0, all = 0;
  module->walk([&](kgpu::TensorLoadOp load) { ++all, shared += load.getMulticast().has_value(); });
  EXPECT_EQ(shared, 1u);
  EXPECT_EQ(all, 2u);
  expectRight(6, {2, 4});
  EXPECT_EQ(outcome(*module, 1, /*ctas=*/6), "") << "a pair without work";
}

TEST_F(ClusterSchedule, ChangesAreFound) { expectSimulated(/*ctas=*/2); }

} // namespace
