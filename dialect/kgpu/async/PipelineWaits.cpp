// Waits for products where their results are needed, so that they run while other work is done.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %d = kgpu.wgmma ...; %s = kgpu.wgmma_wait 0 %d; kgpu.release %ring[%i]
//         %e = kgpu.wgmma ...; %o = kgpu.wgmma_wait 0 %e; kgpu.release %other[%j]
//         ... %s ...; ... %o ...
// After:  %d = kgpu.wgmma ...;  %e = kgpu.wgmma ...
//         %s = kgpu.wgmma_wait 1 %d; kgpu.release %ring[%i]; ... %s ...
//         %o = kgpu.wgmma_wait 0 %e; kgpu.release %other[%j]; ... %o ...
//
// Where a tile is reduced on the way, `kgpu.scheduling_fence` follows the first reduction: the products of the wait run
// under it. ptxas would wait as soon as the products before it are done. Measured on an H200 with attention, heads of
// 128: 3 to 5 % of the time.
//
// A wait behind another one that leaves no more products running, and no younger ones, is part of that one: ptxas takes
// a second wait for one of products that still run, and puts waits of its own in front of what reads their results.
// What products of the next iteration read from registers is rounded at the end of the body, behind all waits: products
// that still run read the registers that it gets, and ptxas lets no others run beside them where such registers are
// written.
//
// A product that only the next one adds to is not waited for, unless what it has read is given back then: the loading
// thread may be waiting for it.
//
// On entry: every wait follows its product and waits for all of them. On exit: a wait stands before the first op that
// needs its result, at the latest at the end of its block, and lets the products run that were started after its own.
// Slots are released behind the wait for what reads them.
#include "dialect/kgpu/Passes.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPIPELINEWAITS
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// The op of the block before which the results of `wait` must be there.
Operation *firstUse(WgmmaWaitOp wait) {
  Block *block = wait->getBlock();
  Operation *first = block->mightHaveTerminator() ? block->getTerminator() : nullptr;
  for (Operation *user : wait->getUsers()) {
    Operation *here = block->findAncestorOpInBlock(*user);
    if (here && (!first || here->isBeforeInBlock(first)))
      first = here;
  }
  return first;
}

/// What follows a wait and belongs to it: uses of rings that end with it.
SmallVector<Operation *> withReleases(WgmmaWaitOp wait) {
  SmallVector<Operation *> ops = {wait};
  for (Operation *next = wait->getNextNode(); next && isa<ReleaseOp, arith::AddIOp, arith::ConstantOp>(next);
       next = next->getNextNode())
    if (isa<ReleaseOp>(next))
      ops.push_back(next);
  return ops;
}

bool adds(Operation *op) {
  auto store = dyn_cast<TensorStoreOp>(op);
  return store && store.getAdds();
}

/// A choice that only computes, as of a mask, is passed: products run under it as under other arithmetic. So they do
/// where results of other products are added to memory between them.
bool staysBefore(Operation *op) {
  if (auto choice = dyn_cast<scf::IfOp>(op)) {
    bool onlyAdds = llvm::all_of(choice.getThenRegion().front(),
                                 [](Operation &inner) { return adds(&inner) || isMemoryEffectFree(&inner); });
    return !isMemoryEffectFree(op) && !(onlyAdds && choice.getElseRegion().empty());
  }
  return isa<scf::ForOp, scf::WhileOp, BarrierOp>(op) || (isa<TensorStoreOp>(op) && !adds(op));
}

/// Behind the first reduction between two ops, where `release` gives back a use that has been awaited.
void fenceFirstReduction(Operation *begin, Operation *end, ReleaseOp release) {
  for (Operation *op = begin; op != end; op = op->getNextNode())
    if (isa<tile::ReduceOp>(op)) {
      OpBuilder builder(op->getContext());
      builder.setInsertionPointAfter(op);
      if (!isa_and_nonnull<SchedulingFenceOp>(op->getNextNode()))
        SchedulingFenceOp::create(builder, op->getLoc(), release.getRing(), release.getUse());
      return;
    }
}

void pipeline(WgmmaWaitOp wait) {
  Operation *goal = firstUse(wait);
  // Not past anything that waits for other reasons, or runs for long.
  Operation *place = wait->getNextNode();
  int64_t younger = 0;
  for (; place && place != goal && !staysBefore(place); place = place->getNextNode())
    if (isa<WgmmaOp>(place))
      ++younger;
  if (!place || place == wait->getNextNode())
    return;
  SmallVector<Operation *> ops = withReleases(wait);
  if (auto release = dyn_cast<ReleaseOp>(ops.back()))
    fenceFirstReduction(release->getNextNode(), place, release);
  for (Operation *op : ops)
    op->moveBefore(place);
  wait.setPending(younger);
}

/// Whether nothing but the next product takes the result, to add to it, and nothing is released behind the wait:
/// products of a warpgroup are done in their order, so it need not be waited for.
bool passOn(WgmmaWaitOp wait) {
  if (wait->getNumResults() != 1 || !wait->hasOneUse() || withReleases(wait).size() > 1)
    return false;
  auto next = dyn_cast<WgmmaOp>(*wait->user_begin());
  if (!next || next->getBlock() != wait->getBlock() || next.getAccumulator() != wait->getResult(0) ||
      !next->hasOneUse())
    return false;
  auto later = dyn_cast<WgmmaWaitOp>(*next->user_begin());
  if (!later || later->getBlock() != wait->getBlock())
    return false;
  wait->getResult(0).replaceAllUsesWith(wait.getValues().front());
  wait->erase();
  return true;
}

bool startsProducts(Operation *op) {
  return op->walk([](WgmmaOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Makes `later`, of whose products none runs any more, and what belongs to it part of `wait`.
WgmmaWaitOp merged(WgmmaWaitOp wait, WgmmaWaitOp later) {
  OpBuilder builder(wait);
  SmallVector<Value> values(wait.getValues());
  llvm::append_range(values, later.getValues());
  auto both = WgmmaWaitOp::create(builder, wait.getLoc(), wait.getPending(), values);
  SmallVector<Operation *> ops = withReleases(later);
  Operation *last = both;
  for (Operation *release : ArrayRef(ops).drop_front()) {
    release->moveAfter(last);
    last = release;
  }
  unsigned count = wait.getNumResults();
  wait->replaceAllUsesWith(both.getResults().take_front(count));
  later->replaceAllUsesWith(both.getResults().drop_front(count));
  wait->erase();
  later->erase();
  return both;
}

void mergeWaits(Block &block) {
  WgmmaWaitOp before;
  SmallVector<Operation *> ops =
      llvm::map_to_vector(block, [](Operation &op) { return &op; }); // those that belong to waits move
  for (Operation *op : ops) {
    if (auto wait = dyn_cast<WgmmaWaitOp>(op))
      before = before && before.getPending() <= wait.getPending() ? merged(before, wait) : wait;
    else if (startsProducts(op) || isa<SchedulingFenceOp>(op)) // what that names is released behind it
      before = {};
  }
}

/// Conversions that lead to nothing but the left operands of the next iteration's products.
void convertLast(scf::ForOp loop) {
  for (WgmmaOp product : loop.getBody()->getOps<WgmmaOp>()) {
    auto argument = dyn_cast<BlockArgument>(product.getLhs());
    if (!argument || argument.getOwner() != loop.getBody() || !isa<RankedTensorType>(argument.getType()))
      continue;
    Value value = loop.getTiedLoopYieldedValue(argument)->get();
    Operation *place = loop.getBody()->getTerminator();
    while (Operation *op = value.getDefiningOp()) {
      if (op->getBlock() != loop.getBody() || !value.hasOneUse() ||
          !isa<arith::TruncFOp, CvtLayoutOp, tile::ReshapeOp, tile::PermuteOp>(op))
        break;
      op->moveBefore(place);
      place = op;
      value = op->getOperand(0);
    }
  }
}

struct PipelineWaits final : impl::KgpuPipelineWaitsBase<PipelineWaits> {
  void runOnOperation() override {
    SmallVector<WgmmaWaitOp> waits;
    getOperation().walk([&](WgmmaWaitOp wait) { waits.push_back(wait); });
    for (WgmmaWaitOp wait : waits)
      if (!passOn(wait))
        pipeline(wait);
    getOperation().walk([](Block *block) { mergeWaits(*block); });
    getOperation().walk(convertLast);
  }
};
} // namespace
} // namespace kpkg::kgpu
