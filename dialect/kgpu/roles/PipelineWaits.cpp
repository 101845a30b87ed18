// Moves waits for products to the first use of their results, so that products overlap with other work.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %d = kgpu.wgmma ...; %s = kgpu.wgmma_wait 0 %d; kgpu.release %ring[%i]
//         %e = kgpu.wgmma ...; %o = kgpu.wgmma_wait 0 %e; kgpu.release %other[%j]
//         ... %s ...; ... %o ...
// After:  %d = kgpu.wgmma ...;  %e = kgpu.wgmma ...
//         %s = kgpu.wgmma_wait 1 %d; kgpu.release %ring[%i]; ... %s ...
//         %o = kgpu.wgmma_wait 0 %e; kgpu.release %other[%j]; ... %o ...
//
// On entry: every wait directly follows its product and waits for all products.
// On exit: a wait stands before the first op that needs its result, at the latest at the end of its block. It leaves
// younger products in flight. Slots are released after the wait for the products that read them.
//
// If a wait moves past a reduction, the pass adds `kgpu.scheduling_fence` after the first reduction, which then
// overlaps with the products. Otherwise ptxas waits as soon as the earlier products are done. Measured on an H200 with
// attention, heads of 128: 3 to 5 % of the time.
//
// A wait is merged into the previous one if that one leaves no more products in flight and no product starts between
// them. Otherwise ptxas treats the second wait as one for products that still run, and inserts its own waits before
// reads of results.
//
// A left operand of the next iteration's product is converted at the end of the body, after all waits. Products in
// flight still read the registers that it gets, and ptxas overlaps no products where registers in use are written.
//
// A product's wait is removed if only the next product adds to its result. The wait stays if a slot is released after
// it, since the producer warp may be waiting for the slot.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/ir/RemarkText.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/kgpu/roles/Releases.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPIPELINEWAITS
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// Returns the op of the block before which the results of `wait` must be available.
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

bool adds(Operation *op) {
  auto store = dyn_cast<TensorStoreOp>(op);
  return store && store.getAdds();
}

/// Returns whether waits cannot move past the op. An scf.if without effects, such as a mask, is passed: products
/// overlap with it as with other arithmetic. So is an scf.if that only adds results of other products to memory.
bool staysBefore(Operation *op) {
  if (auto choice = dyn_cast<scf::IfOp>(op)) {
    bool onlyAdds = llvm::all_of(choice.getThenRegion().front(),
                                 [](Operation &inner) { return adds(&inner) || isMemoryEffectFree(&inner); });
    return !isMemoryEffectFree(op) && !(onlyAdds && choice.getElseRegion().empty());
  }
  return isa<scf::ForOp, scf::WhileOp, BarrierOp>(op) || (isa<TensorStoreOp>(op) && !adds(op));
}

/// Adds a fence after the first reduction in [`begin`, `end`), with the awaited use that `release` gives back.
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

constexpr Optimisation kWaits{"kgpu-pipeline-waits", "product in flight beside other work"};

void pipeline(WgmmaWaitOp wait) {
  Operation *goal = firstUse(wait);
  // Stops before ops that wait for other reasons or run for long.
  Operation *place = wait->getNextNode();
  int64_t younger = 0;
  for (; place && place != goal && !staysBefore(place); place = place->getNextNode())
    if (isa<WgmmaOp>(place))
      ++younger;
  if (!place || place == wait->getNextNode())
    return remarkRefused(wait, kWaits,
                         place == goal ? "its result is used at once"
                                       : "a loop, a store or a barrier follows, which needs the products to be done");
  remarkApplied(wait, kWaits,
                younger == 0 ? "up to the first use of its result"
                             : "up to the first use of its result, with " + counted(younger, "later product"));
  SmallVector<ReleaseOp> releases = releasesAfter(wait);
  if (!releases.empty())
    fenceFirstReduction(releases.back()->getNextNode(), place, releases.back());
  wait->moveBefore(place);
  moveAfter(wait, releases);
  wait.setPending(younger);
}

/// Removes the wait if only the next product takes the result, as its accumulator, and no slot is released after the
/// wait. Products of a warpgroup complete in order, so the wait for the next product is enough.
bool passOn(WgmmaWaitOp wait) {
  if (wait->getNumResults() != 1 || !wait->hasOneUse() || !releasesAfter(wait).empty())
    return false;
  auto next = dyn_cast<WgmmaOp>(*wait->user_begin());
  if (!next || next->getBlock() != wait->getBlock() || next.getAccumulator() != wait->getResult(0) ||
      !next->hasOneUse())
    return false;
  auto later = dyn_cast<WgmmaWaitOp>(*next->user_begin());
  if (!later || later->getBlock() != wait->getBlock())
    return false;
  remarkApplied(wait, kWaits, "the next product adds to its result without a wait");
  wait->getResult(0).replaceAllUsesWith(wait.getValues().front());
  wait->erase();
  return true;
}

/// Merges `later`, whose products are all complete after `wait`, and its releases into `wait`.
WgmmaWaitOp merged(WgmmaWaitOp wait, WgmmaWaitOp later) {
  OpBuilder builder(wait);
  SmallVector<Value> values(wait.getValues());
  llvm::append_range(values, later.getValues());
  auto both = WgmmaWaitOp::create(builder, wait.getLoc(), wait.getPending(), values);
  moveAfter(both, releasesAfter(later));
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
      llvm::map_to_vector(block, [](Operation &op) { return &op; }); // a copy of the list, since releases move
  for (Operation *op : ops) {
    if (auto wait = dyn_cast<WgmmaWaitOp>(op))
      before = before && before.getPending() <= wait.getPending() ? merged(before, wait) : wait;
    else if (containsOp<WgmmaOp>(op) || isa<SchedulingFenceOp>(op)) // its operands are released after it
      before = {};
  }
}

/// Moves conversions that feed only the left operands of the next iteration's products to the end of the body.
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
    for (auto wait : opsIn<WgmmaWaitOp>(getOperation()))
      if (!passOn(wait))
        pipeline(wait);
    getOperation().walk([](Block *block) { mergeWaits(*block); });
    getOperation().walk(convertLast);
  }
};
} // namespace
} // namespace kpkg::kgpu
