// Reads the first fragments of an iteration at the end of the previous one, while the tensor cores are still busy.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for ... iter_args(%sum = %z, %read = 0, ...) {
//           kgpu.async_wait 1;  kgpu.barrier
//           kgpu.async_copy ...;  kgpu.async_commit
//           %a0 = kgpu.local_load %ring[%read] at [0, 0]
//           %a1 = kgpu.local_load %ring[%read] at [0, 16]
//           %s0 = kgpu.mma %a0, ..., %sum
//           %s1 = kgpu.mma %a1, ..., %s0
//           scf.yield %s1, %next, ...
//         }
// After:  kgpu.async_wait 1;  kgpu.barrier
//         %first = kgpu.local_load %ring[0] at [0, 0]
//         scf.for ... iter_args(%sum = %z, %read = 0, ..., %a0 = %first) {
//           %a1 = kgpu.local_load %ring[%read] at [0, 16]
//           kgpu.async_copy ...;  kgpu.async_commit
//           %s0 = kgpu.mma %a0, ..., %sum
//           kgpu.async_wait 1;  kgpu.barrier
//           %following = kgpu.local_load %ring[%next] at [0, 0]
//           %s1 = kgpu.mma %a1, ..., %s0
//           scf.yield %s1, %next, ..., %following
//         }
//
// On entry: loops of kgpu-ring-copies.
// On exit: in loops with a kgpu.mma, the wait for the next slot stands before the last product that uses the current
// slot. All fragments of the current slot have been read by then, so the barrier still guarantees that the slot is
// free. The last iteration preloads undefined values, which are not used.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/ir/Walks.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPRELOADFRAGMENTS
#include "dialect/kgpu/Passes.h.inc"

namespace {
class Preloading {
public:
  explicit Preloading(scf::ForOp loop) : loop(loop) {}

  /// Finds the parts of a ring's loop. Returns why there is none, or why its first product has other operands.
  WhyNot whyNot() {
    for (Operation &op : *loop.getBody()) {
      if (auto found = dyn_cast<AsyncWaitOp>(op); found && !barrier)
        wait = found;
      if (auto found = dyn_cast<BarrierOp>(op); found && !barrier)
        barrier = found;
      if (auto mma = dyn_cast<MmaOp>(op)) {
        if (!first)
          first = mma;
        last = mma;
      }
      if (isa<AsyncCopyOp, AsyncGatherOp, AsyncCommitOp>(op) && !first)
        copies.push_back(&op);
      if (auto store = dyn_cast<LocalStoreOp>(op); store && store.getAhead())
        stores.push_back(store);
    }
    if (!first)
      return "it has no product";
    if (!barrier)
      return "its operands are not copied ahead";
    for (Value operand : {first.getLhs(), first.getRhs()}) {
      auto load = operand.getDefiningOp<LocalLoadOp>();
      auto slot = load ? load.getBuffer().getDefiningOp<SlotOp>() : SlotOp();
      auto index = slot ? dyn_cast<BlockArgument>(slot.getIndex()) : BlockArgument();
      // A barrier after the read does not wait for the slot.
      if (!index || index.getOwner() != loop.getBody() || index == loop.getInductionVar() ||
          !barrier->isBeforeInBlock(load) || !operand.hasOneUse())
        return "an operand of its first product is not copied ahead, or several products read it";
      loads.push_back(load);
    }
    return std::nullopt;
  }

  void run() {
    OpBuilder before(loop), late(last);
    if (wait)
      before.clone(*wait.getOperation());
    before.clone(*barrier.getOperation());
    for (LocalStoreOp store : stores) {
      // The stored value was loaded at the beginning of the iteration.
      store->moveBefore(last);
    }
    // Reads for this iteration's products precede copies for a later iteration, since neither can pass the other
    // afterwards. The wait counts the groups that are committed before it. So copies precede the first product even if
    // it is the only one.
    for (Operation *copy : copies)
      copy->moveBefore(first);
    if (wait)
      wait->moveBefore(last);
    barrier->moveBefore(last);
    SmallVector<Value> firsts, nexts;
    for (LocalLoadOp load : loads) {
      auto slot = load.getBuffer().getDefiningOp<SlotOp>();
      auto index = cast<BlockArgument>(slot.getIndex());
      OpOperand *init = loop.getTiedLoopInit(index);
      Value next = loop.getTiedLoopYieldedValue(index)->get();
      hoist(next);
      firsts.push_back(loadFrom(before, load, slot, init->get()));
      nexts.push_back(loadFrom(late, load, slot, next));
    }
    unsigned carried = loop.getNumRegionIterArgs();
    scf::ForOp longer = carryAlso(loop, firsts, [&](OpBuilder &, ArrayRef<BlockArgument>) { return nexts; });
    for (auto [load, argument] : llvm::zip_equal(loads, longer.getRegionIterArgs().drop_front(carried))) {
      load.getResult().replaceAllUsesWith(argument);
      load.erase();
    }
  }

private:
  static Value loadFrom(OpBuilder &builder, LocalLoadOp load, SlotOp slot, Value index) {
    Location loc = load.getLoc();
    Value part = SlotOp::create(builder, loc, slot.getType(), slot.getBuffer(), index);
    return LocalLoadOp::create(builder, loc, load.getType(), part, load.getAtAttr());
  }

  /// Moves the ops of the loop that compute `value` before the last product.
  void hoist(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || op->isBeforeInBlock(last))
      return;
    for (Value operand : op->getOperands())
      hoist(operand);
    op->moveBefore(last);
  }

  scf::ForOp loop;
  AsyncWaitOp wait;
  BarrierOp barrier;
  MmaOp first, last;
  SmallVector<Operation *> copies;
  SmallVector<LocalStoreOp> stores;
  SmallVector<LocalLoadOp, 2> loads;
};

constexpr Optimisation kPreload{"kgpu-preload-fragments", "operands of the next iteration read early"};

struct PreloadFragments final : impl::KgpuPreloadFragmentsBase<PreloadFragments> {
  void runOnOperation() override {
    for (scf::ForOp loop : opsIn<scf::ForOp>(getOperation())) {
      if (loop.getBody()->getOps<MmaOp>().empty())
        continue;
      Preloading preloading(loop);
      if (remarkOn(loop, kPreload, preloading.whyNot(), "they are read from shared memory while tensor cores are busy"))
        preloading.run();
    }
  }
};
} // namespace
} // namespace kpkg::kgpu
