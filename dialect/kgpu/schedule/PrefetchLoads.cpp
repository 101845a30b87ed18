// Loads of a loop are issued one iteration before they are used, and travel in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %i = %a to %b step %s {
//           %v = tile.load %x[%i, %c0] ...
//           use %v
//         }
// After:  %first = tile.load %x[%a, %c0] ...
//         scf.for %i = %a to %b step %s iter_args(%v = %first) {
//           %j = arith.addi %i, %s
//           %next = tile.load %x[%j, %c0] ...
//           use %v
//           scf.yield %next
//         }
//
// On entry: any kernel; it is left alone without the attribute `kgpu.prefetch`. On exit: loads of read-only views, whose
// addresses need nothing but the loop's counter and what is known outside, are one iteration ahead; those that every iteration repeats stay. The last one reads
// what nobody asked for: loads are always in bounds, so it costs a little traffic and nothing else. Loops with matrix
// products are left alone: their operands go through shared memory.
#include "dialect/kgpu/schedule/PrefetchLoads.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/schedule/LoadAhead.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPREFETCHLOADS
#include "dialect/kgpu/Passes.h.inc"

namespace {
bool prefetchIn(scf::ForOp loop) {
  if (loop.getBody()->walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return false;
  SmallVector<LoadAhead> aheads;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (std::optional<LoadAhead> ahead = LoadAhead::find(loop, load); ahead && ahead->followsCounter())
      aheads.push_back(std::move(*ahead));
  if (aheads.empty())
    return false;
  OpBuilder before(loop);
  SmallVector<Value> firsts, nexts;
  for (const LoadAhead &ahead : aheads)
    firsts.push_back(ahead.loadAt(before, loop.getLowerBound()));
  auto builder = OpBuilder::atBlockBegin(loop.getBody());
  Value following = arith::AddIOp::create(builder, loop.getLoc(), loop.getInductionVar(), loop.getStep());
  for (const LoadAhead &ahead : aheads)
    nexts.push_back(ahead.loadAt(builder, following));
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  unsigned carried = loop.getNumRegionIterArgs();
  auto yields = [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return nexts; };
  FailureOr<LoopLikeOpInterface> longer =
      loop.replaceWithAdditionalYields(rewriter, firsts, /*replaceInitOperandUsesInLoop=*/false, yields);
  assert(succeeded(longer) && "a loop of the scf dialect takes any number of values");
  auto arguments = longer->getRegionIterArgs().drop_front(carried);
  for (auto [ahead, argument] : llvm::zip_equal(aheads, arguments)) {
    ahead.load.getResult().replaceAllUsesWith(argument);
    ahead.load.erase();
  }
  return true;
}
} // namespace

bool prefetchLoads(tile::KernelOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  bool changed = false;
  for (scf::ForOp loop : loops)
    changed |= prefetchIn(loop);
  return changed;
}

namespace {
struct KgpuPrefetchLoads final : impl::KgpuPrefetchLoadsBase<KgpuPrefetchLoads> {
  using KgpuPrefetchLoadsBase::KgpuPrefetchLoadsBase;
  void runOnOperation() override {
    if (getLaunch(getOperation()).prefetch)
      prefetchLoads(getOperation());
  }
};
} // namespace
} // namespace kpkg::kgpu
