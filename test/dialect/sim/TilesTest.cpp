// Tests the dynamic tile scheduler in the simulator: right for CTAs of any speed, and mutations of roles are found.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace kpkg;
using namespace mlir;

namespace {

/// A product of a triangular matrix: tiles of later columns have more terms, and tiles of the first column have none.
constexpr const char *source = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @triangle(%a: !in, %b: !in, %d: !out) attributes {schedule = #tile.schedule<stages = 2, dynamic = 1>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %rows = tile.dim %d, 0 : !out
  %columns = tile.dim %d, 1 : !out
  %tm = arith.ceildivsi %rows, %c64 : index
  %tn = arith.ceildivsi %columns, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c64 : index
    %n = arith.muli %j, %c64 : index
    %sum = scf.for %s = %c0 to %j step %c1 iter_args(%acc = %zeros) -> tensor<64x64xf32> {
      %k = arith.muli %s, %c64 : index
      %x = tile.load %a[%m, %k] fill %zero : !in -> tensor<64x64xbf16>
      %y = tile.load %b[%k, %n] fill %zero : !in -> tensor<64x64xbf16>
      %p = tile.dot %x, %y, %acc : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
      scf.yield %p : tensor<64x64xf32>
    }
    %r = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xbf16>
    tile.store %r, %d[%m, %n] : tensor<64x64xbf16>, !out
  }
  tile.return
}
)";

struct TakenTiles : ComparedTest {
  void SetUp() override {
    constexpr int64_t rows = 128, columns = 320;
    reads(signs(rows * columns, 1, 64), {rows, columns});
    reads(signs(columns * columns, 3, 192), {columns, columns});
    writes({rows, columns});
    prepare(source);
  }
  /// Expects that the verifier or the simulator finds a change of every op of a kind.
  template <typename Op> void expectFound(const char *name, function_ref<void(Op)> change) {
    size_t count = 0;
    module->walk([&](Op) { ++count; });
    ASSERT_GT(count, 0u) << name;
    for (size_t number = 0; number < count; ++number) {
      OwningOpRef<ModuleOp> copy = module->clone();
      SmallVector<Op> ops;
      copy->walk([&](Op op) { ops.push_back(op); });
      change(ops[number]);
      EXPECT_FALSE(verify(*copy).empty() && outcome(*copy, 0, 3).empty() && outcome(*copy, 1, 2).empty())
          << name << " " << number;
    }
  }
};

Value plusOne(Operation *op, Value value) {
  OpBuilder builder(op);
  Value one = arith::ConstantOp::create(builder, op->getLoc(), builder.getIntegerAttr(value.getType(), 1));
  return arith::AddIOp::create(builder, op->getLoc(), value, one);
}

TEST_F(TakenTiles, AreAllMadeOnceByCtasOfAnySpeed) {
  ASSERT_TRUE(kgpu::getLaunch(kernelOf(*module)).dynamic);
  expectRight(8, {1, 2, 3, 4, 5});
  EXPECT_EQ(outcome(*module, 3, /*ctas=*/10), "") << "a tile each";
  EXPECT_EQ(outcome(*module, 4, /*ctas=*/12), "") << "CTAs without a tile";
}

TEST_F(TakenTiles, RolesThatDisagreeAreFound) {
  expectFound<kgpu::PublishIndexOp>("nothing sent", [](kgpu::PublishIndexOp op) { op.erase(); });
  expectFound<kgpu::PublishIndexOp>(
      "sent as the next use", [](kgpu::PublishIndexOp op) { op.getUseMutable().assign(plusOne(op, op.getUse())); });
  expectFound<kgpu::PublishIndexOp>("another number sent", [](kgpu::PublishIndexOp op) {
    op.getNumberMutable().assign(plusOne(op, op.getNumber()));
  });
  expectFound<kgpu::PublishIndexOp>("sent before the copies", [](kgpu::PublishIndexOp op) {
    Operation *take = op.getNumber().getDefiningOp();
    take->moveBefore(&op->getBlock()->front());
    op->moveAfter(take);
  });
  expectFound<kgpu::ConsumeIndexOp>(
      "received as the next use", [](kgpu::ConsumeIndexOp op) { op.getUseMutable().assign(plusOne(op, op.getUse())); });
  expectFound<kgpu::ConsumeIndexOp>("received twice", [](kgpu::ConsumeIndexOp op) {
    op->getBlock()->getOperations().insert(std::next(op->getIterator()), op->clone());
  });
  expectFound<kgpu::ConsumeIndexOp>("counted alone", [](kgpu::ConsumeIndexOp op) {
    Value next = plusOne(op, op->getBlock()->getArgument(0));
    op.getResult().replaceAllUsesWith(next);
  });
  expectFound<kgpu::NextTileOp>("of more tiles",
                                [](kgpu::NextTileOp op) { op.getCountMutable().assign(plusOne(op, op.getCount())); });
  expectFound<kgpu::NextTileOp>("taken twice", [](kgpu::NextTileOp op) {
    op->getBlock()->getOperations().insert(op->getIterator(), op->clone());
  });
}

} // namespace
