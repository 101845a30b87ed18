// Lets warpgroups start their products in turn, so that the arithmetic of one runs under the products of another.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: kgpu.await %ring[%i]; %s = kgpu.wgmma ...; %o = kgpu.wgmma ...; %t = kgpu.wgmma_wait 1 %s; ...
// After:  kgpu.await %ring[%i]; kgpu.ping_pong_wait; %s = kgpu.wgmma ...; %o = kgpu.wgmma ...; kgpu.ping_pong_signal;
// %t = kgpu.wgmma_wait 1 %s; ...
//
// Where products of an iteration are made from the results of others in it, a turn goes from the former to the end of
// the latter in the next iteration:
//         kgpu.ping_pong_wait
//         scf.for ... { %s = kgpu.wgmma ...; kgpu.ping_pong_signal; %t = kgpu.wgmma_wait 0 %s; %p = f(%t);
//         kgpu.ping_pong_wait; %o = kgpu.wgmma %p ... } kgpu.ping_pong_signal
//
// Where results of the latter go to memory in their iteration, the turn ends before that: products of the others run
// under it.
//
// Warpgroups that meet in an iteration, to exchange elements of tiles, go in step and take no turns; nor do those for
// which another one makes operands.
//
// On entry: a kernel with several warpgroups that compute, whose waits are where they stay. On exit: in loops that
// start several products and compute with their results, all products between two stretches of arithmetic are started
// within one turn. Without it such warpgroups fall in step by chance: measured on an H200, 579 or 695 TFLOP/s for
// nearly the same code of attention.
#include "dialect/kgpu/Passes.h"
#include "dialect/layout/Conversion.h"
#include "mlir/Analysis/SliceAnalysis.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPINGPONG
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// The first product that is made from the result of another one of its iteration; null where there is none.
WgmmaOp firstOfSecondHalf(ArrayRef<WgmmaOp> products) {
  Block *block = products.front()->getBlock();
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) { return op->getBlock() == block; };
  for (WgmmaOp product : products) {
    SetVector<Operation *> slice;
    if (isa<RankedTensorType>(product.getLhs().getType()))
      (void)getBackwardSlice(Value(product.getLhs()), &slice, options);
    if (llvm::any_of(slice, llvm::IsaPred<WgmmaOp>))
      return product;
  }
  return {};
}

/// The last wait between `second` and what then goes to memory in the same iteration; null where nothing does.
WgmmaWaitOp waitBeforeStore(WgmmaOp second) {
  WgmmaWaitOp last;
  for (Operation *op = second; op; op = op->getNextNode()) {
    if (op->walk([](TensorStoreOp) { return WalkResult::interrupt(); }).wasInterrupted())
      return last;
    if (auto wait = dyn_cast<WgmmaWaitOp>(op))
      last = wait;
  }
  return {};
}

/// Whether warpgroups meet at a barrier to do this.
bool meets(Operation *op) {
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return layoutOf(reduce.getValue()).bitsAlong(layout::Part::Warp, reduce.getAxis()) != 0;
  auto convert = dyn_cast<CvtLayoutOp>(op);
  if (!convert)
    return false;
  unsigned bytes = elementBytes(getElementTypeOrSelf(convert.getType()));
  llvm::Expected<layout::Conversion> conversion =
      layout::planConversion(layoutOf(convert.getValue()), layoutOf(convert.getResult()), bytes);
  bool isShared = conversion && std::holds_alternative<layout::SharedPlan>(conversion->plan);
  llvm::consumeError(conversion.takeError());
  return isShared;
}

void takeTurns(scf::ForOp loop, ArrayRef<WgmmaOp> products) {
  Location loc = loop.getLoc();
  OpBuilder builder(products.front());
  if (WgmmaOp second = firstOfSecondHalf(products)) {
    builder.setInsertionPoint(second);
    PingPongWaitOp::create(builder, loc);
    if (WgmmaWaitOp done = waitBeforeStore(second)) {
      builder.setInsertionPointAfter(done);
      PingPongSignalOp::create(builder, loc);
      return;
    }
    const auto *last = std::prev(llvm::find(products, second));
    builder.setInsertionPointAfter(*last);
    PingPongSignalOp::create(builder, loc);
    builder.setInsertionPoint(loop);
    PingPongWaitOp::create(builder, loc);
    builder.setInsertionPointAfter(loop);
    PingPongSignalOp::create(builder, loc);
    return;
  }
  // What runs under other warpgroups' products: reductions are the mark of arithmetic that takes as long as they do.
  bool computes = llvm::any_of(loop.getBody()->getOperations(), llvm::IsaPred<tile::ReduceOp, tile::CombineOp>);
  if (!computes)
    return;
  PingPongWaitOp::create(builder, loc);
  builder.setInsertionPointAfter(products.back());
  PingPongSignalOp::create(builder, loc);
}

struct PingPong final : impl::KgpuPingPongBase<PingPong> {
  void runOnOperation() override {
    if (Launch launch = getLaunch(getOperation()); launch.consumers < 2 || launch.producers != 0)
      return;
    getOperation().walk([](scf::ForOp loop) {
      SmallVector<WgmmaOp> products(loop.getBody()->getOps<WgmmaOp>());
      // Turns do not nest: of loops within each other the innermost one takes them.
      bool hasInner = llvm::any_of(loop.getBody()->getOperations(), llvm::IsaPred<scf::ForOp>);
      // Those that meet in each iteration go in step.
      bool areTogether = llvm::any_of(loop.getBody()->getOperations(), [](Operation &op) { return meets(&op); });
      if (products.size() >= 2 && !hasInner && !areTogether)
        takeTurns(loop, products);
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
