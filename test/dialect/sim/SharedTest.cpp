// Tests products of shared tiles and TMA additions by all tiles on Hopper, by the simulator and the schedule verifier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// Warpgroups share tiles, and all tiles add to common sums. %a and %b are [rows, 128], %d is [columns, 128], %z is
/// [rows, 128]. Some inner loops never run.
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!sum = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
tile.kernel @shared(%a: !in, %b: !in, %d: !out, %z: !sum) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %nothing = arith.constant dense<0.0> : tensor<64x128xf32>
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
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x128xbf16>
    %sum = scf.for %h = %c0 to %c2 step %c1 iter_args(%x0 = %zeros) -> tensor<128x128xf32> {
      %twice = arith.muli %i, %c2 : index
      %first = arith.addi %twice, %h : index
      %inner = scf.for %j = %first to %tm step %c1 iter_args(%x = %x0) -> tensor<128x128xf32> {
        %m = arith.muli %j, %c64 : index
        %q = tile.load %b[%m, %c0] fill %zero : !in -> tensor<64x128xbf16>
        %qt = tile.permute %q [1, 0] : tensor<64x128xbf16> -> tensor<128x64xbf16>
        %s = tile.dot %k, %qt, %none : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
        %p = arith.addf %s, %s : tensor<128x64xf32>
        %e = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
        %x1 = tile.dot %e, %q, %x : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
        %et = tile.permute %e [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
        %y = tile.dot %et, %k, %nothing : tensor<64x128xbf16>, tensor<128x128xbf16>, tensor<64x128xf32>
        tile.add_store %y, %z[%m, %c0] : tensor<64x128xf32>, !sum
        scf.yield %x1 : tensor<128x128xf32>
      }
      scf.yield %inner : tensor<128x128xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %narrow, %d[%n, %c0] : tensor<128x128xbf16>, !out
  }
  tile.return
}
)";

/// Too large for pipelined products: a product waits for the shared tile in its own iteration.
constexpr const char *atOnceSource = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!sum = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
tile.kernel @merged(%a: !in, %b: !in, %v: !in, %g: !in, %d: !out, %z: !sum) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %none = arith.constant dense<0.0> : tensor<128x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %a, 0 : !in
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  %tm = arith.ceildivsi %rows, %c128 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %w = tile.load %v[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %sum = scf.for %j = %c0 to %tm step %c1 iter_args(%x = %zeros) -> tensor<128x64xf32> {
      %m = arith.muli %j, %c128 : index
      %q = tile.load %b[%m, %c0] fill %zero : !in -> tensor<128x64xbf16>
      %qt = tile.permute %q [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %s = tile.dot %k, %qt, %none : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %u = tile.load %g[%m, %c0] fill %zero : !in -> tensor<128x64xbf16>
      %ut = tile.permute %u [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
      %t = tile.dot %w, %ut, %none : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
      %p = arith.mulf %s, %t : tensor<128x128xf32>
      %e = arith.truncf %p : tensor<128x128xf32> to tensor<128x128xbf16>
      %x1 = tile.dot %e, %q, %x : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      %et = tile.permute %e [1, 0] : tensor<128x128xbf16> -> tensor<128x128xbf16>
      %y = tile.dot %et, %k, %zeros : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
      tile.add_store %y, %z[%m, %c0] : tensor<128x64xf32>, !sum
      scf.yield %x1 : tensor<128x64xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %narrow, %d[%n, %c0] : tensor<128x64xbf16>, !out
  }
  tile.return
}
)";

/// Products of tiles that both warpgroups compute.
struct Shared : ComparedTest {
  static constexpr int64_t columns = 256, rows = 200;
  void SetUp() override {
    reads(signs(rows * 128, 1, 128), {rows, 128});
    reads(signs(rows * 128, 3, 192), {rows, 128});
    writes({columns, 128});
    writes({rows, 128}, /*before=*/1);
    prepare(source);
  }
};

TEST_F(Shared, IsRightInEveryOrder) {
  size_t late = 0;
  module->walk([&](kgpu::WgmmaOp product) { late += product.getDroppable(); });
  ASSERT_EQ(late, 2u) << "one in the loop, one behind it";
  expectRight(3);
}

struct SharedAtOnce : Shared {
  void SetUp() override {
    std::vector<uint16_t> left = signs(rows * 64, 1, 128), right = signs(rows * 64, 3, 192);
    for (const std::vector<uint16_t> &input : {left, right, right, left})
      reads(input, {rows, 64});
    writes({columns, 64});
    writes({rows, 64}, /*before=*/1);
    prepare(atOnceSource);
  }
};

TEST_F(SharedAtOnce, IsRightInEveryOrder) {
  module->walk([](kgpu::WgmmaOp product) { EXPECT_FALSE(product.getDroppable()); });
  expectRight(3);
}

TEST_F(SharedAtOnce, ChangesAreFound) {
  int64_t changes = 0;
  module->walk([&](Operation *op) {
    changes += isa<kgpu::ReleaseOp, kgpu::AwaitOp, kgpu::PublishAllOp, kgpu::WgmmaWaitOp>(op);
  });
  ASSERT_GT(changes, 8);
  for (int64_t number = 0; number < changes; ++number) {
    OwningOpRef<ModuleOp> copy = module->clone();
    int64_t at = 0;
    Operation *dropped = nullptr;
    copy->walk([&](Operation *op) {
      if (isa<kgpu::ReleaseOp, kgpu::AwaitOp, kgpu::PublishAllOp, kgpu::WgmmaWaitOp>(op) && at++ == number)
        dropped = op;
    });
    dropped->replaceAllUsesWith(dropped->getNumResults() ? dropped->getOperands() : ValueRange());
    dropped->erase();
    EXPECT_FALSE(verify(*copy).empty()) << number;
  }
}

TEST_F(Shared, ChangesAreFound) {
  auto isRefused = [&](llvm::function_ref<void(kgpu::PublishAllOp, kgpu::AwaitOp)> change) {
    OwningOpRef<ModuleOp> copy = module->clone();
    kgpu::PublishAllOp share;
    copy->walk([&](kgpu::PublishAllOp op) { share = op; });
    kgpu::AwaitOp await;
    for (auto op : share->getBlock()->getOps<kgpu::AwaitOp>())
      if (op.getRing() == share.getRing())
        await = op;
    change(share, await);
    return !verify(*copy).empty();
  };
  EXPECT_FALSE(isRefused([](kgpu::PublishAllOp, kgpu::AwaitOp) {}));
  EXPECT_TRUE(isRefused([](kgpu::PublishAllOp, kgpu::AwaitOp await) { await.erase(); }));
  EXPECT_TRUE(isRefused([](kgpu::PublishAllOp share, kgpu::AwaitOp) { share.erase(); }));
  EXPECT_TRUE(isRefused([](kgpu::PublishAllOp share, kgpu::AwaitOp await) { share->moveAfter(await); }));
  EXPECT_TRUE(isRefused([](kgpu::PublishAllOp share, kgpu::AwaitOp await) { // Older than the slots allow.
    OpBuilder builder(await);
    Value two = arith::ConstantIntOp::create(builder, await.getLoc(), -2, 32);
    await.getUseMutable().assign(arith::AddIOp::create(builder, await.getLoc(), share.getUse(), two));
  }));
  EXPECT_TRUE(isRefused([](kgpu::PublishAllOp share, kgpu::AwaitOp) { // The next use's slot.
    OpBuilder builder(share);
    Value one = arith::ConstantIntOp::create(builder, share.getLoc(), 1, 32);
    share.getUseMutable().assign(arith::AddIOp::create(builder, share.getLoc(), share.getUse(), one));
  }));
}

} // namespace
