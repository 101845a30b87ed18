// Tests latent attention on Hopper by the simulator, in three forms.
//
// * Two warpgroups compute halves of the columns, one gets its weights from the other, and two products read one slot
//   in two orientations.
// * The columns are in two parts, and a producer warpgroup computes the weights.
// * The second form with conditional rescaling.
//
// Weights are powers of two with exact sums, so that the order of additions has no effect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "SimulatedTest.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

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
  %nothing = arith.constant dense<0.0> : tensor<64x1xf32>
  %least = arith.constant dense<0xFF800000> : tensor<64x1xf32>
  %sixteenth = arith.constant dense<0.0625> : tensor<64x64xf32>
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
    %top, %total, %sum = scf.for %j = %c0 to %tn step %c1 iter_args(%before = %least, %weight = %nothing, %acc = %zeros)
        -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x512xf32>) {
      %n = arith.muli %j, %c64 : index
      %c = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x576xbf16>
      %ct = tile.permute %c [1, 0] : tensor<64x576xbf16> -> tensor<576x64xbf16>
      %s = tile.dot %x, %ct, %none : tensor<64x576xbf16>, tensor<576x64xbf16>, tensor<64x64xf32>
      %part = arith.mulf %s, %sixteenth : tensor<64x64xf32>
      %whole = math.floor %part : tensor<64x64xf32>
      %most = tile.reduce max %whole axis 1 : tensor<64x64xf32> -> tensor<64x1xf32>
      %now = arith.maximumf %before, %most : tensor<64x1xf32>
      %shift = tile.broadcast %now : tensor<64x1xf32> -> tensor<64x64xf32>
      %under = arith.subf %whole, %shift : tensor<64x64xf32>
      %e = math.exp2 %under : tensor<64x64xf32>
      %fall = arith.subf %before, %now : tensor<64x1xf32>
      %keep = math.exp2 %fall : tensor<64x1xf32>
      %kept = arith.mulf %weight, %keep : tensor<64x1xf32>
      %own = tile.reduce sum %e axis 1 : tensor<64x64xf32> -> tensor<64x1xf32>
      %next = arith.addf %kept, %own : tensor<64x1xf32>
      %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xbf16>
      %v = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x512xbf16>
      %factor = tile.broadcast %keep : tensor<64x1xf32> -> tensor<64x512xf32>
      %scaled = arith.mulf %acc, %factor : tensor<64x512xf32>
      %o = tile.dot %p, %v, %scaled : tensor<64x64xbf16>, tensor<64x512xbf16>, tensor<64x512xf32>
      scf.yield %now, %next, %o : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x512xf32>
    }
    %weights = tile.broadcast %total : tensor<64x1xf32> -> tensor<64x512xf32>
    %mean = arith.divf %sum, %weights : tensor<64x512xf32>
    %r = arith.truncf %mean : tensor<64x512xf32> to tensor<64x512xbf16>
    tile.store %r, %y[%m, %c0] : tensor<64x512xbf16>, !out
  }
  tile.return
}
)";
constexpr const char *sourceOfParts = R"(
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @latent(%q: !in, %k: !in, %y: !out) attributes {schedule = #tile.schedule<roles = 3>} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zeros = arith.constant dense<0.0> : tensor<64x256xf32>
  %nothing = arith.constant dense<0.0> : tensor<64x1xf32>
  %least = arith.constant dense<0xFF800000> : tensor<64x1xf32>
  %sixteenth = arith.constant dense<0.0625> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %rows = tile.dim %q, 0 : !in
  %keys = tile.dim %k, 0 : !in
  %tm = arith.ceildivsi %rows, %c64 : index
  %tn = arith.ceildivsi %keys, %c64 : index
  tile.for_tiles (%i) to (%tm) {
    %m = arith.muli %i, %c64 : index
    %x = tile.load %q[%m, %c0] fill %zero : !in -> tensor<64x256xbf16>
    %z = tile.load %q[%m, %c256] fill %zero : !in -> tensor<64x320xbf16>
    %top, %total, %low, %high = scf.for %j = %c0 to %tn step %c1 iter_args(%before = %least, %weight = %nothing, %first = %zeros, %second = %zeros)
        -> (tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x256xf32>, tensor<64x256xf32>) {
      %n = arith.muli %j, %c64 : index
      %c = tile.load %k[%n, %c0] fill %zero : !in -> tensor<64x256xbf16>
      %ct = tile.permute %c [1, 0] : tensor<64x256xbf16> -> tensor<256x64xbf16>
      %half = tile.dot %x, %ct, %none : tensor<64x256xbf16>, tensor<256x64xbf16>, tensor<64x64xf32>
      %d = tile.load %k[%n, %c256] fill %zero : !in -> tensor<64x320xbf16>
      %dt = tile.permute %d [1, 0] : tensor<64x320xbf16> -> tensor<320x64xbf16>
      %s = tile.dot %z, %dt, %half : tensor<64x320xbf16>, tensor<320x64xbf16>, tensor<64x64xf32>
      %part = arith.mulf %s, %sixteenth : tensor<64x64xf32>
      %whole = math.floor %part : tensor<64x64xf32>
      %most = tile.reduce max %whole axis 1 : tensor<64x64xf32> -> tensor<64x1xf32>
      %now = arith.maximumf %before, %most : tensor<64x1xf32>
      %shift = tile.broadcast %now : tensor<64x1xf32> -> tensor<64x64xf32>
      %under = arith.subf %whole, %shift : tensor<64x64xf32>
      %e = math.exp2 %under : tensor<64x64xf32>
      %fall = arith.subf %before, %now : tensor<64x1xf32>
      %keep = math.exp2 %fall : tensor<64x1xf32>
      %kept = arith.mulf %weight, %keep : tensor<64x1xf32>
      %own = tile.reduce sum %e axis 1 : tensor<64x64xf32> -> tensor<64x1xf32>
      %next = arith.addf %kept, %own : tensor<64x1xf32>
      %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xbf16>
      %v = tile.load %k[%n, %c256] fill %zero : !in -> tensor<64x256xbf16>
      %factor = tile.broadcast %keep : tensor<64x1xf32> -> tensor<64x256xf32>
      %scaled = arith.mulf %first, %factor : tensor<64x256xf32>
      %o = tile.dot %p, %c, %scaled : tensor<64x64xbf16>, tensor<64x256xbf16>, tensor<64x256xf32>
      %others = arith.mulf %second, %factor : tensor<64x256xf32>
      %u = tile.dot %p, %v, %others : tensor<64x64xbf16>, tensor<64x256xbf16>, tensor<64x256xf32>
      scf.yield %now, %next, %o, %u : tensor<64x1xf32>, tensor<64x1xf32>, tensor<64x256xf32>, tensor<64x256xf32>
    }
    %weights = tile.broadcast %total : tensor<64x1xf32> -> tensor<64x256xf32>
    %mean = arith.divf %low, %weights : tensor<64x256xf32>
    %r = arith.truncf %mean : tensor<64x256xf32> to tensor<64x256xbf16>
    tile.store %r, %y[%m, %c0] : tensor<64x256xbf16>, !out
    %other = arith.divf %high, %weights : tensor<64x256xf32>
    %t = arith.truncf %other : tensor<64x256xf32> to tensor<64x256xbf16>
    tile.store %t, %y[%m, %c256] : tensor<64x256xbf16>, !out
  }
  tile.return
}
)";

/// Replaces %whole to %keep: accumulators are scaled by a factor that is 1 in rows whose maximum does not grow.
constexpr const char *seldomLarger = R"(
      %most = tile.reduce max %whole axis 1 : tensor<64x64xf32> -> tensor<64x1xf32>
      %growth = arith.subf %most, %before : tensor<64x1xf32>
      %grows = arith.cmpf ogt, %growth, %nothing : tensor<64x1xf32>
      %now = arith.select %grows, %most, %before : tensor<64x1xi1>, tensor<64x1xf32>
      %shift = tile.broadcast %now : tensor<64x1xf32> -> tensor<64x64xf32>
      %under = arith.subf %whole, %shift : tensor<64x64xf32>
      %e = math.exp2 %under : tensor<64x64xf32>
      %fall = arith.subf %before, %most : tensor<64x1xf32>
      %less = math.exp2 %fall : tensor<64x1xf32>
      %ones = arith.constant dense<1.0> : tensor<64x1xf32>
      %keep = arith.select %grows, %less, %ones : tensor<64x1xi1>, tensor<64x1xf32>
)";

/// Inputs of -1, 0 and 1.
struct Latent : ComparedTest {
  virtual std::string text() const { return source; }
  virtual int64_t firstKey() const { return 0; } ///< Keys before it are mostly zeros.
  void SetUp() override {
    reads(signs(queries * width, 1, width), {queries, width});
    std::vector<uint16_t> k = signs(keys * width, 3, 192);
    for (int64_t i = 0; i < firstKey() * width; ++i)
      k[size_t(i)] = i % 8 != 0 ? 0 : k[size_t(i)];
    reads(k, {keys, width});
    writes({queries, valueWidth});
    prepare(text());
    ASSERT_EQ(kgpu::getLaunch(kernelOf(*module)).consumers, 2u);
  }
};

TEST_F(Latent, IsRightInEveryOrder) { expectRight(3); }

TEST_F(Latent, WarpgroupsWaitForWhatTheOtherMade) {
  SmallVector<kgpu::BarrierOp> barriers;
  module->walk([&](kgpu::BarrierOp barrier) { barriers.push_back(barrier); });
  ASSERT_FALSE(barriers.empty());
  for (kgpu::BarrierOp barrier : barriers)
    barrier.erase();
  EXPECT_NE(outcome(*module, 0, 1), "");
}

struct LatentParts : Latent {
  std::string text() const override { return sourceOfParts; }
};

TEST_F(LatentParts, IsRightInEveryOrder) {
  ASSERT_EQ(kgpu::getLaunch(kernelOf(*module)).producers, 1u);
  expectRight(6);
}

/// Tests mutations of publish, await and release: erased, or with another use.
TEST_F(LatentParts, ChangesOfWhatIsHandedOnAreFound) {
  auto isOfPublished = [](Operation *op) {
    Value ring = isa<kgpu::PublishOp>(op)                  ? cast<kgpu::PublishOp>(op).getRing()
                 : isa<kgpu::AwaitOp, kgpu::ReleaseOp>(op) ? op->getOperand(0)
                                                           : Value();
    return ring && ring.getDefiningOp<kgpu::RingOp>().getKind() == kgpu::RingKind::Published;
  };
  size_t count = 0, simulated = 0;
  module->walk([&](Operation *op) { count += isOfPublished(op); });
  ASSERT_EQ(count, 12u); // Two halves of the weights, the factor of the sums and their divisor: each published, awaited
                         // and released.
  for (size_t number = 0; number < count; ++number)
    for (bool isErased : {true, false}) {
      OwningOpRef<ModuleOp> copy = module->clone();
      size_t at = 0;
      Operation *changed = nullptr;
      copy->walk([&](Operation *op) {
        if (isOfPublished(op) && at++ == number)
          changed = op;
      });
      if (isErased) {
        changed->erase();
      } else {
        auto *use = llvm::find_if(changed->getOpOperands(),
                                  [](OpOperand &operand) { return operand.get().getType().isInteger(32); });
        OpBuilder builder(changed);
        use->set(arith::AddIOp::create(builder, changed->getLoc(), use->get(),
                                       arith::ConstantIntOp::create(builder, changed->getLoc(), 1, 32)));
      }
      EXPECT_NE(verify(*copy), "") << number << isErased;
      simulated += !outcome(*copy, number, 1).empty();
    }
  // The next use of a ring with one slot is the same slot. One order does not show every missing wait.
  EXPECT_GE(simulated, 14u);
}

struct LatentSeldom : LatentParts {
  std::string text() const override {
    std::string text = sourceOfParts;
    size_t begin = text.find("      %most ="), keep = text.find("      %keep =");
    return text.replace(begin, text.find('\n', keep) - begin, seldomLarger);
  }
  int64_t firstKey() const override { return 64; } // Scores of later blocks are larger than those of the first one.
  SmallVector<kgpu::WarpAnyOp> choices(ModuleOp kernel) {
    SmallVector<kgpu::WarpAnyOp> all;
    kernel.walk([&](kgpu::WarpAnyOp any) { all.push_back(any); });
    return all;
  }
};

TEST_F(LatentSeldom, IsRightInEveryOrder) {
  ASSERT_EQ(kgpu::getLaunch(kernelOf(*module)).producers, 1u);
  ASSERT_EQ(choices(*module).size(), 1u);
  expectRight(4);
}

TEST_F(LatentSeldom, WhatIsSkippedIsNeededElsewhere) {
  kgpu::WarpAnyOp any = choices(*module).front();
  OpBuilder builder(any);
  any.replaceAllUsesWith(arith::ConstantIntOp::create(builder, any.getLoc(), 0, 1).getResult());
  EXPECT_EQ(outcome(*module, 0, 1), "the result is wrong");
}

/// Tests that the consumer warpgroups get weights of a block only after all of its values are complete and cleared.
TEST_F(LatentParts, OthersClearNothing) {
  int64_t count = 0;
  module->walk([&](kgpu::RolesOp roles) { roles.getConsumers().walk([&](kgpu::ClearOutsideOp) { ++count; }); });
  EXPECT_EQ(count, 0);
}

} // namespace
