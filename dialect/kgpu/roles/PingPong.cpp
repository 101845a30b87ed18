// Schedules consumer warpgroups in ping-pong, so that the arithmetic of one overlaps with the products of another.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: kgpu.await %ring[%i]; %s = kgpu.wgmma ...; %o = kgpu.wgmma ...; %t = kgpu.wgmma_wait 1 %s; ...
// After:  kgpu.await %ring[%i]; kgpu.ping_pong_wait; %s = kgpu.wgmma ...; %o = kgpu.wgmma ...
//         kgpu.ping_pong_signal; %t = kgpu.wgmma_wait 1 %s; ...
//
// If a second group of products in an iteration reads results of the first group, a turn begins at the second group.
// It ends after the first group of the next iteration:
//         kgpu.ping_pong_wait
//         scf.for ... { %s = kgpu.wgmma ...; kgpu.ping_pong_signal; %t = kgpu.wgmma_wait 0 %s; %p = f(%t);
//                       kgpu.ping_pong_wait; %o = kgpu.wgmma %p ... }
//         kgpu.ping_pong_signal
//
// If results of the second group are stored in the same iteration, the turn ends before the store. Products of the
// other warpgroups overlap with the store.
//
// Warpgroups that meet at a barrier in each iteration, to exchange elements of tiles, take no turns. Kernels with a
// producer warpgroup are unchanged too.
//
// On entry: a kernel with several consumer warpgroups, after kgpu-pipeline-waits has placed the waits.
// On exit: in loops that start several products and compute with their results, all products between two stretches of
// arithmetic start within one turn.
//
// Without turns, warpgroups fall into step by chance. Measured on an H200: 579 or 695 TFLOP/s for nearly the same code
// of attention.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/Slices.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/layout/Conversion.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPINGPONG
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// Returns the first product whose left operand depends on another product of the iteration, or null.
WgmmaOp firstOfSecondHalf(ArrayRef<WgmmaOp> products) {
  for (WgmmaOp product : products)
    if (isa<RankedTensorType>(product.getLhs().getType()) &&
        llvm::any_of(sliceIn(*product->getBlock(), product.getLhs()), llvm::IsaPred<WgmmaOp>))
      return product;
  return {};
}

/// Returns the last wait between `second` and the next store by a tensor map in the iteration, or null without a
/// store.
WgmmaWaitOp waitBeforeStore(WgmmaOp second) {
  WgmmaWaitOp last;
  for (Operation *op = second; op; op = op->getNextNode()) {
    if (containsOp<TensorStoreOp>(op))
      return last;
    if (auto wait = dyn_cast<WgmmaWaitOp>(op))
      last = wait;
  }
  return {};
}

/// Returns whether warpgroups meet at a barrier for this op.
bool meets(Operation *op) {
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return layoutOf(reduce.getValue()).bitsAlong(layout::Part::Warp, reduce.getAxis()) != 0;
  auto convert = dyn_cast<CvtLayoutOp>(op);
  if (!convert)
    return false;
  unsigned bytes = elementBytes(getElementTypeOrSelf(convert.getType()));
  auto conversion = llvm::expectedToOptional(
      layout::planConversion(layoutOf(convert.getValue()), layoutOf(convert.getResult()), bytes));
  return conversion && std::holds_alternative<layout::SharedPlan>(conversion->plan);
}

constexpr Optimisation kTurns{"kgpu-ping-pong", "warpgroups that take turns"};

/// Inserts the signals of ping-pong scheduling, or returns why it does not pay off.
WhyNot takeTurns(scf::ForOp loop, ArrayRef<WgmmaOp> products) {
  Location loc = loop.getLoc();
  OpBuilder builder(products.front());
  if (WgmmaOp second = firstOfSecondHalf(products)) {
    builder.setInsertionPoint(second);
    PingPongWaitOp::create(builder, loc);
    if (WgmmaWaitOp done = waitBeforeStore(second)) {
      builder.setInsertionPointAfter(done);
      PingPongSignalOp::create(builder, loc);
      return std::nullopt;
    }
    const auto *last = std::prev(llvm::find(products, second));
    builder.setInsertionPointAfter(*last);
    PingPongSignalOp::create(builder, loc);
    builder.setInsertionPoint(loop);
    PingPongWaitOp::create(builder, loc);
    builder.setInsertionPointAfter(loop);
    PingPongSignalOp::create(builder, loc);
    return std::nullopt;
  }
  // A reduction marks arithmetic that takes as long as the products of other warpgroups do.
  bool computes = llvm::any_of(loop.getBody()->getOperations(), llvm::IsaPred<tile::ReduceOp, tile::CombineOp>);
  if (!computes)
    return "it has no reduction, and other arithmetic is too short to overlap with products of other warpgroups";
  PingPongWaitOp::create(builder, loc);
  builder.setInsertionPointAfter(products.back());
  PingPongSignalOp::create(builder, loc);
  return std::nullopt;
}

/// Returns why the warpgroups of a loop with products cannot take turns.
WhyNot whyNot(scf::ForOp loop, ArrayRef<WgmmaOp> products, const Launch &launch) {
  if (launch.consumers < 2)
    return "one warpgroup computes alone";
  if (launch.producers != 0)
    return "a warpgroup that computes operands sets the pace";
  // Turns do not nest: only innermost loops take them.
  if (llvm::any_of(loop.getBody()->getOperations(), llvm::IsaPred<scf::ForOp>))
    return "it has a loop in it";
  // Warpgroups that meet in each iteration run in step.
  if (llvm::any_of(loop.getBody()->getOperations(), [](Operation &op) { return meets(&op); }))
    return "warpgroups exchange elements of a tile in each iteration, and so run in step";
  if (products.size() < 2)
    return "it has one product, which runs while the next one is issued";
  return std::nullopt;
}

struct PingPong final : impl::KgpuPingPongBase<PingPong> {
  void runOnOperation() override {
    Launch launch = getLaunch(getOperation());
    getOperation().walk([&](scf::ForOp loop) {
      SmallVector<WgmmaOp> products(loop.getBody()->getOps<WgmmaOp>());
      if (products.empty())
        return;
      WhyNot why = whyNot(loop, products, launch);
      if (!why)
        why = takeTurns(loop, products);
      remarkOn(loop, kTurns, why, "one multiplies while another one computes");
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
