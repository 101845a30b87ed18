// Delays products of shared tiles by one iteration, so that none waits for a tile of the same iteration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %m = %lo to %hi iter_args(%use) {
//           ...; kgpu.publish_all %p to %slot signals %ring[%use]; ...
//           kgpu.await %ring[%use]; %d = kgpu.wgmma %slot^T, %k ...; %e = kgpu.wgmma_wait 0 %d
//           kgpu.tensor_store adds %e, %y[%m] }
// After:  scf.for %m = %lo to %hi iter_args(%use) {
//           ...; kgpu.publish_all %p to %slot signals %ring[%use]; ...
//           kgpu.await %ring[%use - 1]; %d = kgpu.wgmma %before^T, %k ... droppable; %e = kgpu.wgmma_wait 0 %d
//           scf.if (%m > %lo) { kgpu.tensor_store adds %e, %y[%m - 1] } }
//         kgpu.await %ring[%use - 1]; %d = kgpu.wgmma ... droppable; ...
//         scf.if (%lo < %hi) { kgpu.tensor_store adds %e, %y[%hi - 1] }
//
// On entry: a kernel with roles in which every wait follows its product.
// On exit: loops of this form are pipelined, if the ring has the four slots that this needs. Other products whose
// results only the next iteration reads share the wait of the delayed product.
//
// The delayed product of the first iteration reads a tile of an earlier loop, and its result is dropped. That costs
// less than a loop with a different first iteration.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPIPELINEOPERANDS
#include "dialect/kgpu/Passes.h.inc"

namespace {
constexpr int64_t kSlotsForPipelining = 4; ///< the description of kgpu.ring gives the reason

class Pipelining {
public:
  explicit Pipelining(PublishAllOp share) : share(share), rewriter(share.getContext()), loc(share.getLoc()) {}

  /// Finds the parts of the loop, or returns why the loop of the publish_all does not have the form above.
  WhyNot whyNot() {
    loop = dyn_cast<scf::ForOp>(share->getParentOp());
    if (!loop || !matchPattern(loop.getStep(), m_One()))
      return "the tile is computed in no loop that counts by 1";
    if (share.getRing().getType().getSlots() < kSlotsForPipelining)
      return "shared memory has room for " + std::to_string(share.getRing().getType().getSlots()) +
             " copies of the tile, not for " + std::to_string(kSlotsForPipelining);
    use = dyn_cast<BlockArgument>(share.getUse());
    if (!use || use.getOwner() != loop.getBody())
      return "the loop computes several such tiles in an iteration";
    for (Operation &op : *loop.getBody()) {
      if (auto await = dyn_cast<AwaitOp>(op); await && await.getRing() == share.getRing())
        return whyNotBehind(await);
    }
    return "the loop has no product of the tile";
  }

  void run() {
    Value number = loop.getInductionVar(), end = loop.getUpperBound();
    // The product of the previous iteration, and its result.
    rewriter.setInsertionPoint(await);
    Value before = useBefore(share.getUse());
    await.getUseMutable().assign(before);
    product.getLhsMutable().assign(slotOf(before));
    product.setDroppable(true);
    WgmmaWaitOp together = waitTogether();
    Operation *place = together;
    while (isa<ReleaseOp>(place->getNextNode()))
      place = place->getNextNode();
    rewriter.setInsertionPointAfter(place);
    Value one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    storeIf(arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::sgt, number, loop.getLowerBound()),
            together.getResults().back(), arith::SubIOp::create(rewriter, loc, number, one));

    rewriter.setInsertionPointAfter(loop);
    Value last = useBefore(loop.getTiedLoopResult(use));
    AwaitOp::create(rewriter, loc, share.getRing(), last);
    Value poison = ub::PoisonOp::create(rewriter, loc, product.getType());
    Value sum = WgmmaOp::create(rewriter, loc, slotOf(last), product.getRhs(), poison,
                                arith::ConstantIntOp::create(rewriter, loc, 0, 1),
                                /*positions=*/Value(), /*droppable=*/true);
    Value done = WgmmaWaitOp::create(rewriter, loc, 0, sum).getResult(0);
    one = arith::ConstantIndexOp::create(rewriter, loc, 1);
    storeIf(arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, loop.getLowerBound(), end), done,
            arith::SubIOp::create(rewriter, loc, end, one));
    rewriter.eraseOp(store);
  }

private:
  /// Returns why the shared tile is not the operand of exactly one product, whose result exactly one adding store
  /// takes.
  WhyNot whyNotBehind(AwaitOp found) {
    await = found;
    for (Operation *op = await; op && !product; op = op->getNextNode())
      if (auto candidate = dyn_cast<WgmmaOp>(op); candidate && isa<SharedType>(candidate.getLhs().getType()) &&
                                                  isSlotOf(candidate.getLhs(), share.getUse()) &&
                                                  rootOf(candidate.getLhs()) == rootOf(share.getBuffer()))
        product = candidate;
    if (!product || !product->hasOneUse() || !loop.isDefinedOutsideOfLoop(product.getRhs()) ||
        !matchPattern(product.getAdds(), m_Zero()))
      return "no single product reads the tile, beside an operand from outside of the loop, into a new result";
    wait = dyn_cast<WgmmaWaitOp>(*product->user_begin());
    store = wait && wait->getNumResults() == 1 && wait->hasOneUse() ? dyn_cast<TensorStoreOp>(*wait->user_begin())
                                                                    : TensorStoreOp();
    if (!store || !store.getAdds() || store->getBlock() != loop.getBody())
      return "the product's result is not just added to memory in each iteration";
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    options.inclusive = true;
    options.filter = [&](Operation *op) { return op->getBlock() == loop.getBody(); };
    for (Value offset : store.getOffsets())
      if (offset.getParentBlock() == loop.getBody() && offset.getDefiningOp())
        (void)getBackwardSlice(offset, &places, options);
    auto isKnown = [&](Value value) {
      auto argument = dyn_cast<BlockArgument>(value);
      return !argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar();
    };
    bool areKnown =
        llvm::all_of(store.getOffsets(), isKnown) && llvm::all_of(places, [&](Operation *op) {
          return op->getNumRegions() == 0 && isMemoryEffectFree(op) && llvm::all_of(op->getOperands(), isKnown);
        });
    return areKnown ? WhyNot() : "the place of the addition depends on more than the loop's counter";
  }

  /// Merges the product's wait with those of earlier products whose results only the next iteration reads.
  WgmmaWaitOp waitTogether() {
    Operation *yield = loop.getBody()->getTerminator();
    SmallVector<WgmmaWaitOp> waits;
    SmallVector<Operation *> releases;
    for (auto one : loop.getBody()->getOps<WgmmaWaitOp>())
      if (one == wait ||
          (one->isBeforeInBlock(wait) && llvm::all_of(one->getUsers(), [&](Operation *user) { return user == yield; })))
        waits.push_back(one);
    SmallVector<Value> values;
    for (WgmmaWaitOp one : waits) {
      llvm::append_range(values, one.getValues());
      for (Operation *next = one->getNextNode();
           one != wait && next && isa<ReleaseOp, arith::AddIOp, arith::ConstantOp>(next); next = next->getNextNode())
        if (isa<ReleaseOp>(next))
          releases.push_back(next);
    }
    rewriter.setInsertionPointAfter(wait);
    auto together = WgmmaWaitOp::create(rewriter, loc, 0, values);
    Operation *last = together;
    for (Operation *release : releases) {
      release->moveAfter(last);
      last = release;
    }
    unsigned done = 0;
    for (WgmmaWaitOp one : waits) {
      unsigned count = one->getNumResults();
      rewriter.replaceOp(one, together.getResults().slice(done, count));
      done += count;
    }
    return together;
  }

  static Value rootOf(Value buffer) {
    while (Value whole = aliasedBuffer(buffer.getDefiningOp()))
      buffer = whole;
    return buffer;
  }

  Value useBefore(Value number) {
    return arith::AddIOp::create(rewriter, loc, number, arith::ConstantIntOp::create(rewriter, loc, -1, 32));
  }
  Value slotOf(Value number) {
    return TransposeBufferOp::create(
        rewriter, loc, useSlot(rewriter, loc, share.getBuffer().getType(), rootOf(share.getBuffer()), number));
  }

  /// Repeats the store of iteration `number` with `value`, under `condition`.
  void storeIf(Value condition, Value value, Value number) {
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(
        scf::IfOp::create(rewriter, loc, condition, /*withElseRegion=*/false).thenBlock());
    IRMapping mapping;
    mapping.map(loop.getInductionVar(), number);
    for (Operation *op : places)
      rewriter.clone(*op, mapping);
    auto copy = cast<TensorStoreOp>(rewriter.clone(*store, mapping));
    copy.getValueMutable().assign(value);
  }

  PublishAllOp share;
  IRRewriter rewriter;
  Location loc;
  scf::ForOp loop;
  BlockArgument use;
  WgmmaOp product;
  AwaitOp await;
  WgmmaWaitOp wait;
  TensorStoreOp store;
  SetVector<Operation *> places; ///< ops that compute the store's offsets
};

constexpr Optimisation kDelay{"kgpu-pipeline-operands", "product of a computed tile one iteration later"};

struct PipelineOperands final : impl::KgpuPipelineOperandsBase<PipelineOperands> {
  void runOnOperation() override {
    SmallVector<PublishAllOp> shares;
    getOperation().walk([&](PublishAllOp share) { shares.push_back(share); });
    for (PublishAllOp share : shares) {
      Pipelining pipelining(share);
      if (WhyNot why = pipelining.whyNot()) {
        remarkRefused(share, kDelay, *why);
        continue;
      }
      remarkApplied(share, kDelay, "no warpgroup waits for the tile in the iteration that computes it");
      pipelining.run();
    }
  }
};
} // namespace
} // namespace kpkg::kgpu
