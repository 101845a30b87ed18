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
// On entry: every wait follows its product and waits for all of them. On exit: a wait stands before the first op that needs its result, at
// the latest at the end of its block, and lets the products run that were started after its own. Slots are released behind the wait for what
// reads them.
#include "dialect/kgpu/Passes.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUDELAYWAITS
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
  for (Operation *next = wait->getNextNode(); next && isa<ReleaseOp, arith::AddIOp, arith::ConstantOp>(next); next = next->getNextNode())
    if (isa<ReleaseOp>(next))
      ops.push_back(next);
  return ops;
}

/// A choice that only computes, as of a mask, is passed: products run under it as under other arithmetic.
bool staysBefore(Operation *op) {
  return isa<scf::ForOp, scf::WhileOp, TensorStoreOp, BarrierOp>(op) || (isa<scf::IfOp>(op) && !isMemoryEffectFree(op));
}

void delay(WgmmaWaitOp wait) {
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
  for (Operation *op : ops)
    op->moveBefore(place);
  wait.setPending(younger);
}

struct DelayWaits final : impl::KgpuDelayWaitsBase<DelayWaits> {
  void runOnOperation() override {
    SmallVector<WgmmaWaitOp> waits;
    getOperation().walk([&](WgmmaWaitOp wait) { waits.push_back(wait); });
    for (WgmmaWaitOp wait : waits)
      delay(wait);
  }
};
} // namespace
} // namespace kpkg::kgpu
