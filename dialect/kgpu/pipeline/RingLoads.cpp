// Fetches loads of a loop several iterations ahead through shared memory; each thread fetches its own elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %i = %a to %b step %s {
//           %v = tile.load %x[%i, %c0] fill %zero : !in -> tensor<1x16384xbf16, #row>
//           use %v
//         }
// After, with a launch of 2 stages:
//         %ring = kgpu.alloc : !kgpu.smem<2x32768xi8>
//         kgpu.fetch %x[%a, %c0] of tensor<1x16384xbf16, #row> if %a < %b to %ring[0];           kgpu.async_commit
//         kgpu.fetch %x[%a + %s, %c0] of tensor<...> if %a + %s < %b to %ring[1];                kgpu.async_commit
//         scf.for %i = %a to %b step %s iter_args(%slot = 0) {
//           kgpu.async_wait 1
//           %v = kgpu.fetched %ring[%slot] of %x[%i, %c0] fill %zero
//           kgpu.fetch %x[%i + 2 * %s, %c0] of tensor<...> if %i + 2 * %s < %b to %ring[%slot];   kgpu.async_commit
//           use %v
//           scf.yield %slot + 1 (after the last slot 0)
//         }
//         kgpu.async_wait 0
//
// On entry: tiles have layouts. The kernel has no products, and its launch has `stages`.
// On exit: in the kernel's outermost loops, loads of read-only views are `stages` iterations ahead. The loads must be
// wide or of several rows, and their addresses must depend on the loop's counter. Loads that every iteration repeats
// are not changed, nor are loads for which facts do not permit vectors of four bytes.
//
// No thread waits for another one: the thread that has read a slot fills it again.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/LoadAhead.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/ir/LaunchOptimisations.h"
#include "dialect/kgpu/ir/RemarkText.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPURINGLOADS
#include "dialect/kgpu/Passes.h.inc"

namespace {
struct Fetch {
  LoadAhead ahead;
  Value ring;
  SharedType slot;
};

class Pipelining {
public:
  Pipelining(scf::ForOp loop, const Launch &launch) : loop(loop), launch(launch) {}

  bool find() {
    for (auto load : loop.getBody()->getOps<tile::LoadOp>()) {
      ResultOrWhy<LoadAhead> ahead = LoadAhead::find(loop, load);
      WhyNot why = !ahead                     ? ahead.why()
                   : !ahead->followsCounter() ? WhyNot("every iteration loads the same")
                                              : whyNotFetched(load);
      if (why) {
        remarkRefused(load, kRingLoads, *why);
        continue;
      }
      remarkApplied(load, kRingLoads, "through shared memory, " + counted(launch.stages, "iteration") + " ahead");
      fetches.push_back({std::move(*ahead), {}, slotFor(load, launch.threads)});
    }
    return !fetches.empty();
  }

  void run() {
    Location loc = loop.getLoc();
    OpBuilder before(loop);
    for (Fetch &fetch : fetches) {
      SharedType ring = SharedType::get({launch.stages, fetch.slot.getShape()[0]}, fetch.slot.getElementType());
      fetch.ring = AllocOp::create(before, loc, ring, IntegerAttr());
    }
    for (unsigned stage = 0; stage < launch.stages; ++stage)
      fetchFor(before, counterAfter(before, loop, loop.getLowerBound(), stage), constant(before, stage));
    Value slot = constant(before, 0);
    if (launch.stages > 1) {
      loop = carryAlso(loop, slot, [&](OpBuilder &builder, ArrayRef<BlockArgument> slots) -> SmallVector<Value> {
        return {slotAfter(builder, loc, slots[0], launch.stages)};
      });
      slot = loop.getRegionIterArgs().back();
      for (Fetch &fetch : fetches)
        fetch.ahead.loop = loop;
    }
    auto top = OpBuilder::atBlockBegin(loop.getBody());
    AsyncWaitOp::create(top, loc, launch.stages - 1);
    Operation *last = nullptr;
    for (Fetch &fetch : fetches) {
      tile::LoadOp load = fetch.ahead.load;
      OpBuilder builder(load);
      Value place = SlotOp::create(builder, loc, fetch.slot, fetch.ring, slot);
      last = FetchedOp::create(builder, load.getLoc(), load.getType(), place, load.getView(), load.getOffsets(),
                               load.getFill());
      load.replaceAllUsesWith(last->getResult(0));
    }
    top.setInsertionPointAfter(last);
    fetchFor(top, counterAfter(top, loop, loop.getInductionVar(), launch.stages), slot);
    for (Fetch &fetch : fetches)
      fetch.ahead.load.erase();
    OpBuilder after(loop->getContext());
    after.setInsertionPointAfter(loop);
    AsyncWaitOp::create(after, loc, 0);
  }

private:
  Value constant(OpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loop.getLoc(), value);
  }

  /// Starts to fill slot `index` for the iteration with this counter.
  void fetchFor(OpBuilder &builder, Value counter, Value index) {
    Location loc = loop.getLoc();
    Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, counter, loop.getUpperBound());
    for (Fetch &fetch : fetches) {
      tile::LoadOp load = fetch.ahead.load;
      IRMapping mapping = fetch.ahead.addressAt(builder, counter);
      auto mapped = [&](Value value) { return mapping.lookupOrDefault(value); };
      SmallVector<Value> offsets = llvm::map_to_vector(load.getOffsets(), mapped);
      Value slot = SlotOp::create(builder, loc, fetch.slot, fetch.ring, index);
      FetchOp::create(builder, load.getLoc(), mapping.lookupOrDefault(load.getView()), offsets,
                      TypeAttr::get(load.getType()), inside, slot);
    }
    AsyncCommitOp::create(builder, loc);
  }

  scf::ForOp loop;
  Launch launch;
  SmallVector<Fetch> fetches;
};

struct RingLoads final : impl::KgpuRingLoadsBase<RingLoads> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    Launch launch = getLaunch(kernel);
    for (auto loop : llvm::make_early_inc_range(kernel.getBody().front().getOps<scf::ForOp>()))
      if (Pipelining pipelining(loop, launch); pipelining.find())
        pipelining.run();
  }
};
} // namespace
} // namespace kpkg::kgpu
