// A product on Hopper through the simulator and the schedule verifier: right as the compiler makes it, wrong in every way that it can be changed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Mutations.h"
#include "SimulatedTest.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// Two tiles of rows, the last one not whole, three steps of depth, two slots.
constexpr int64_t rows = 160, depth = 160;
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @product(%a: !in, %b: !in, %d: !out) attributes {schedule = {stages = 2 : i32}} {
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

struct Schedule : SimulatedTest {
  int64_t columns = 64;
  unsigned cluster = 1;
  int64_t tileRows = 128;
  std::vector<uint16_t> a, b, d, expected;

  OwningOpRef<ModuleOp> product() {
    std::string text(source);
    for (size_t at = 0; (at = text.find("128", at)) != std::string::npos; at += 3)
      text.replace(at, 3, std::to_string(tileRows));
    OwningOpRef<ModuleOp> module = parse(text);
    if (cluster > 1) {
      NamedAttrList hints(kernelOf(*module).getScheduleAttr());
      hints.set("cluster", Builder(&context).getI32IntegerAttr(cluster));
      kernelOf(*module).setScheduleAttr(hints.getDictionary(&context));
    }
    return module;
  }
  OwningOpRef<ModuleOp> compiled() {
    OwningOpRef<ModuleOp> module = product();
    compile(*module);
    return module;
  }
  std::vector<sim::Argument> arguments() { return {view(a, {rows, depth}), view(b, {depth, columns}), view(d, {rows, columns})}; }

  void SetUp() override {
    for (size_t i = 0; i < size_t(rows * depth); ++i)
      a.push_back(wholeNumber(i * i + 3 * i));
    for (size_t i = 0; i < size_t(depth * columns); ++i)
      b.push_back(wholeNumber(i * 3 + i / 64));
    d.assign(size_t(rows * columns), poison);
    ASSERT_EQ(interpret(*product(), arguments()), "");
    expected = d;
  }

  /// What the simulator finds; empty for a right result.
  std::string outcome(ModuleOp module, uint64_t seed, int64_t ctas = 1) {
    d.assign(d.size(), poison);
    std::string wrong = simulate(module, arguments(), seed, ctas);
    return !wrong.empty() ? wrong : d == expected ? "" : "the result is wrong";
  }

  /// Expects that changes of the kernel are found by the verifier or the simulator, most of them by the latter.
  void expectFound(ModuleOp module, int64_t ctas) {
    auto isSeen = [&](ModuleOp copy) {
      for (uint64_t seed = 0; seed < 3; ++seed)
        if (!outcome(copy, seed, ctas).empty())
          return true;
      return false;
    };
    Found found = search(module, [&](ModuleOp copy) { return !verify(copy).empty(); }, isSeen);
    EXPECT_GE(found.count, 40);
    EXPECT_GE(found.either * 100, found.count * 95) << "missed:" << found.missed;
    EXPECT_GE(found.simulated * 100, found.count * 85);
  }
};

TEST_F(Schedule, IsRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiled();
  ASSERT_TRUE(module->walk([](kgpu::RolesOp) { return WalkResult::interrupt(); }).wasInterrupted()) << "the kernel has no roles";
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 6; ++seed)
    EXPECT_EQ(outcome(*module, seed), "") << seed;
  EXPECT_EQ(outcome(*module, 0, /*ctas=*/2), "");
  EXPECT_EQ(outcome(*module, 1, /*ctas=*/3), "") << "a CTA without work";
}

TEST_F(Schedule, ChangesAreFound) {
  expectFound(*compiled(), /*ctas=*/1);
}

/// The same in tiles of 192 rows, a third for each of three warpgroups. One tile has no rows for the last of them.
struct ThreeWarpgroups : Schedule {
  ThreeWarpgroups() { tileRows = 192; }
};

TEST_F(ThreeWarpgroups, AreRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiled();
  EXPECT_EQ(kgpu::getLaunch(kernelOf(*module)).consumers, 3u);
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 6; ++seed)
    EXPECT_EQ(outcome(*module, seed), "") << seed;
}

TEST_F(ThreeWarpgroups, ChangesAreFound) {
  expectFound(*compiled(), /*ctas=*/1);
}

/// The same with pairs of CTAs that copy rows of %a for each other. Tiles of the last pair lie outside in part.
struct ClusterSchedule : Schedule {
  ClusterSchedule() {
    columns = 160;
    cluster = 2;
  }
};

TEST_F(ClusterSchedule, IsRightInEveryOrder) {
  OwningOpRef<ModuleOp> module = compiled();
  size_t shared = 0, all = 0;
  module->walk([&](kgpu::TensorLoadOp load) { ++all, shared += load.getMulticast().has_value(); });
  EXPECT_EQ(shared, 1u);
  EXPECT_EQ(all, 2u);
  EXPECT_EQ(verify(*module), "");
  for (uint64_t seed = 0; seed < 6; ++seed)
    EXPECT_EQ(outcome(*module, seed, /*ctas=*/seed % 2 ? 4 : 2), "") << seed;
  EXPECT_EQ(outcome(*module, 1, /*ctas=*/6), "") << "a pair without work";
}

TEST_F(ClusterSchedule, ChangesAreFound) {
  expectFound(*compiled(), /*ctas=*/2);
}

} // namespace
