// Latent attention's products on Hopper through the simulator: two warpgroups with halves of the columns, a slot that two products read in two ways.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/pipeline/GpuPipeline.h"
#include "dialect/pipeline/Registration.h"
#include "dialect/sim/async/Simulator.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include <array>
#include <gtest/gtest.h>

using namespace kpkg;
using namespace mlir;

namespace {

constexpr int64_t queries = 70, keys = 150, width = 576, valueWidth = 512;
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @latent(%q: !in, %k: !in, %y: !out) {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x512xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim %q, 0 : !in
  %keys = tile.dim %k, 0 : !in
  %tm = arith.ceildivsi %rows, %c64 : index
  %tn = arith.ceildivsi %keys, %c64 : index
  tile.for_tiles (%i) to (%tm) {
    %m = arith.muli %i, %c64 : index
    %x = tile.load %q[%m, %c0] fill %zero : !in -> tensor<64x576xbf16>
    %sum = scf.for %j = %c0 to %tn step %c1 iter_args(%acc = %zeros) -> tensor<64x512xf32> {
      %n = arith.muli %j, %c64 : index
      %c = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x576xbf16>
      %ct = tile.permute %c [1, 0] : tensor<64x576xbf16> -> tensor<576x64xbf16>
      %s = tile.dot %x, %ct, %none : tensor<64x576xbf16>, tensor<576x64xbf16>, tensor<64x64xf32>
      %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xbf16>
      %v = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x512xbf16>
      %o = tile.dot %p, %v, %acc : tensor<64x64xbf16>, tensor<64x512xbf16>, tensor<64x512xf32>
      scf.yield %o : tensor<64x512xf32>
    }
    %r = arith.truncf %sum : tensor<64x512xf32> to tensor<64x512xbf16>
    tile.store %r, %y[%m, %c0] : tensor<64x512xbf16>, !out
  }
  tile.return
}
)";

class Latent : public testing::Test {
protected:
  DialectRegistry registry = [] {
    DialectRegistry all;
    registerDialects(all);
    return all;
  }();
  MLIRContext context{registry, MLIRContext::Threading::DISABLED};
  std::vector<uint16_t> q, k, y = std::vector<uint16_t>(size_t(queries * valueWidth), 0x7fc0);

  sim::Argument view(std::vector<uint16_t> &data, int64_t columns) {
    sim::View all{reinterpret_cast<char *>(data.data()), BFloat16Type::get(&context), {int64_t(data.size()) / columns, columns}, {columns, 1}};
    return all;
  }
  std::vector<sim::Argument> arguments() { return {view(q, width), view(k, width), view(y, valueWidth)}; }
};

TEST_F(Latent, IsRightInEveryOrder) {
  auto number = [](size_t i) { return uint16_t(std::array{0xbf80, 0, 0x3f80}[i * 7919 % 65521 % 3]); }; // -1, 0, 1
  for (size_t i = 0; i < size_t(queries * width); ++i)
    q.push_back(number(i + i / width));
  for (size_t i = 0; i < size_t(keys * width); ++i)
    k.push_back(number(3 * i + i / 192));
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(source, &context);
  ASSERT_TRUE(module);
  auto kernel = [&] { return *module->getOps<tile::KernelOp>().begin(); };
  llvm::Error failed = sim::run(kernel(), arguments(), {1, 1, 1});
  ASSERT_EQ(llvm::toString(std::move(failed)), "");
  std::vector<uint16_t> expected = y;
  PassManager passes(&context);
  buildGpuPipeline(passes, "sm_90a", 0);
  ASSERT_TRUE(succeeded(passes.run(*module)));
  ASSERT_EQ(kgpu::getLaunch(kernel()).consumers, 2u);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    y.assign(y.size(), 0x7fc0);
    sim::AsyncOptions options;
    options.seed = seed;
    llvm::Error wrong = sim::simulate(kernel(), arguments(), {1 + int64_t(seed % 2), 1, 1}, options);
    EXPECT_EQ(llvm::toString(std::move(wrong)), "") << seed;
    EXPECT_EQ(y, expected) << seed;
  }
}

} // namespace
