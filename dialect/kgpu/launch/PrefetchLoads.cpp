// Issues loads of a loop one iteration ahead, with their values in registers.
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
// On entry: a kernel whose launch has `prefetch`.
// On exit: loads of read-only views are one iteration ahead if their addresses depend only on the loop's counter and
// values from outside. Loads that every iteration repeats are not changed. In kernels with rings, loads that suit a
// ring are left to kgpu-ring-loads, and kgpu.touch prefetches later addresses of the others into the L2 cache.
//
// The last iteration loads data that nobody uses. Loads are always in bounds, so this costs only a little traffic.
// Loops with matrix products are not changed, because their operands go through shared memory.
#include "dialect/kgpu/launch/PrefetchLoads.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/LoadAhead.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/ir/LaunchOptimisations.h"
#include "dialect/kgpu/ir/Walks.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPREFETCHLOADS
#include "dialect/kgpu/Passes.h.inc"

namespace {

/// Prefetches the address of a later iteration into the L2 cache. A load for the next iteration ends in a register
/// move, which ptxas places at the iteration's end. So a load that takes longer than the rest of an iteration delays
/// all threads. From the L2 cache it takes a third of the time.
void touchFurther(OpBuilder &builder, const LoadAhead &ahead) {
  tile::LoadOp load = ahead.load;
  scf::ForOp loop = ahead.loop;
  tile::ViewType view = load.getView().getType();
  if (view.getRank() != 1 || view.getUnit() != 0)
    return;
  Location loc = load.getLoc();
  int64_t iterations = heuristicsOf(load->getParentOfType<tile::KernelOp>()).iterationsAhead;
  Value counter = counterAfter(builder, loop, loop.getInductionVar(), iterations);
  Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, counter, loop.getUpperBound());
  IRMapping mapping = ahead.addressAt(builder, counter);
  Value offset = load.getOffsets().front();
  TouchOp::create(builder, loc, mapping.lookupOrDefault(load.getView()), mapping.lookupOrDefault(offset),
                  TypeAttr::get(load.getType()), inside);
}

bool prefetchIn(scf::ForOp loop, bool hasRings, LoadReport report) {
  if (containsOp<tile::DotOp>(loop))
    return false;
  SmallVector<LoadAhead> aheads;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>()) {
    if (hasRings && isForRing(load))
      continue; // kgpu-ring-loads reports on it
    ResultOrWhy<LoadAhead> ahead = LoadAhead::find(loop, load);
    if (!ahead) {
      report(load, ahead.why());
    } else if (!ahead->followsCounter()) {
      report(load, "every iteration loads the same");
    } else {
      report(load, std::nullopt);
      aheads.push_back(std::move(*ahead));
    }
  }
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
  if (hasRings)
    for (const LoadAhead &ahead : aheads)
      touchFurther(builder, ahead);
  unsigned carried = loop.getNumRegionIterArgs();
  scf::ForOp longer = carryAlso(loop, firsts, [&](OpBuilder &, ArrayRef<BlockArgument>) { return nexts; });
  for (auto [ahead, argument] : llvm::zip_equal(aheads, longer.getRegionIterArgs().drop_front(carried))) {
    ahead.load.getResult().replaceAllUsesWith(argument);
    ahead.load.erase();
  }
  return true;
}
} // namespace

bool prefetchLoads(tile::KernelOp kernel, bool hasRings, LoadReport report) {
  bool changed = false;
  for (auto loop : opsIn<scf::ForOp>(kernel))
    changed |= prefetchIn(loop, hasRings, report);
  return changed;
}

namespace {
struct KgpuPrefetchLoads final : impl::KgpuPrefetchLoadsBase<KgpuPrefetchLoads> {
  void runOnOperation() override {
    bool hasRings = getLaunch(getOperation()).stages != 0;
    prefetchLoads(getOperation(), hasRings, [](tile::LoadOp load, const WhyNot &why) {
      remarkOn(load, kPrefetch, why, "it is in flight while an iteration computes");
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
