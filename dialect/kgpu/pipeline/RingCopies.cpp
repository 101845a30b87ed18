// Copies loads for shared memory several iterations ahead, through a ring buffer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %k = %a to %b step %s {
//           %v = tile.load %x[%r, %k] ... : tensor<128x32xbf16, #copy>
//           %m = kgpu.alloc : !kgpu.smem<128x32xbf16, "...">;  kgpu.local_store %v, %m
//           use %m
//         }
// After, with a launch of 3 stages:
//         %ring = kgpu.alloc : !kgpu.smem<3x128x32xbf16, "...">
//         kgpu.async_copy %x[%r, %a] as #copy if %a < %b to %ring[0];       kgpu.async_commit
//         kgpu.async_copy %x[%r, %a + %s] ... if %a + %s < %b to %ring[1];  kgpu.async_commit
//         scf.for %k = %a to %b step %s iter_args(%read = 0, %write = 2) {
//           kgpu.async_wait 1;  kgpu.barrier
//           kgpu.async_copy %x[%r, %k + 2 * %s] ... to %ring[%write];  kgpu.async_commit
//           use %ring[%read]
//           scf.yield %read + 1 (after the last slot 0), %read
//         }
//         kgpu.async_wait 0
//
// On entry: operands of products are in buffers (kgpu-expand-mma), and the launch has at least two `stages`.
// On exit: loads of read-only views, and gathers of their rows, are that many iterations less one ahead. Their
// addresses must depend only on the loop's counter and carried counters (CarriedCounters). If other code needs the
// carried counters too, a second set of them runs ahead.
//
// There is one barrier per iteration: a slot is filled when all threads have passed the barrier after its last use.
// Some loads cannot be asynchronous: facts do not permit vectors of four bytes, or the fill value is not zero. They
// are loaded at the beginning of the iteration and stored at its end. Without any asynchronous copy two slots are
// enough.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/AccessWidths.h"
#include "dialect/kgpu/analysis/LoadAhead.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/ir/Constants.h"
#include "dialect/kgpu/ir/LaunchOptimisations.h"
#include "dialect/kgpu/ir/RemarkText.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/tile/transforms/RowGathers.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPURINGCOPIES
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// A tile that an iteration loads or gathers into one buffer. It can be issued for another iteration.
struct Copy {
  Operation *source;                ///< a load, or a gather of rows
  SmallVector<Operation *> address; ///< ops of the loop that compute its place, in order
  LocalStoreOp store;
  AllocOp buffer;
  bool isAsync;
  Value ring = {};
};

/// Returns the ops of the loop that compute where a load reads.
ResultOrWhy<SmallVector<Operation *>> addressOf(tile::LoadOp load, scf::ForOp loop, const CarriedCounters &counters) {
  ResultOrWhy<LoadAhead> ahead = LoadAhead::find(loop, load, &counters);
  if (!ahead)
    return ahead.refusal();
  return ahead->address;
}

/// Returns the ops of the loop that compute the coordinates of gathered rows.
ResultOrWhy<SmallVector<Operation *>> addressOf(tile::GatherOp gather, scf::ForOp loop,
                                                const CarriedCounters &counters) {
  std::optional<tile::RowGather> rows = tile::rowGather(gather);
  tile::ViewType view = gather.getView().getType();
  if (!rows || int64_t(rows->along) != view.getUnit())
    return Refusal{"the gather reads no contiguous rows of the tensor"};
  if (view.getIsMut())
    return Refusal{"the kernel may write to the tensor"};
  // Layout conversions would be repeated, each with an exchange.
  auto mayRepeat = [](Operation *op) { return !isa<CvtLayoutOp>(op); };
  if (std::optional<SmallVector<Operation *>> address = addressAhead(loop, gather, &counters, mayRepeat))
    return *address;
  return Refusal{"the gathered places depend on more than the loop's counter"};
}

/// Returns whether asynchronous copies, of four bytes or more, can bring `longest` elements along `dim` at once.
bool canCopyVectors(const layout::Layout &layout, SharedType buffer, unsigned dim, int64_t longest) {
  unsigned vectorBytes = layout.vectorLength(dim, longest) * buffer.getElementBytes();
  return vectorBytes >= 4 && keepsVectors(layout, buffer.getPlacement(), dim, vectorBytes);
}

bool canCopyAsync(tile::GatherOp gather, SharedType buffer, const TargetModel &target) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(gather.getType()).getShape();
  int64_t together = tile::neighboursOf(gather.getView().getType(), gather.getIndices(), shape);
  return target.hasAsyncCopy && isZero(gather.getFill()) && together > 1 &&
         canCopyVectors(layoutOf(gather.getResult()), buffer, 1, together);
}

bool canCopyAsync(tile::LoadOp load, SharedType buffer, const TargetModel &target) {
  tile::ViewType view = load.getView().getType();
  if (!target.hasAsyncCopy || view.getUnit() < 0 || !isZero(load.getFill()))
    return false;
  int64_t longest = mostTogether(view, load.getOffsets());
  return longest * view.getElementBytes() >= 4 &&
         canCopyVectors(layoutOf(load.getResult()), buffer, view.getUnit(), longest);
}

class Pipelining {
public:
  Pipelining(scf::ForOp loop, unsigned stages) : loop(loop), stages(stages), counters(CarriedCounters::of(loop)) {}

  bool find(const TargetModel &target) {
    for (auto store : loop.getBody()->getOps<LocalStoreOp>()) {
      auto load = store.getValue().getDefiningOp<tile::LoadOp>();
      auto gather = store.getValue().getDefiningOp<tile::GatherOp>();
      auto buffer = store.getBuffer().getDefiningOp<AllocOp>();
      if ((!load && !gather) || !buffer || !store.getValue().hasOneUse() || buffer->getBlock() != loop.getBody())
        continue;
      // No other op may fill the buffer, or read it through an alias.
      bool isPlain =
          llvm::all_of(buffer->getUsers(), [&](Operation *user) { return user == store || isa<LocalLoadOp>(user); });
      if (!isPlain)
        continue;
      load ? find(load, store, buffer, target) : find(gather, store, buffer, target);
    }
    if (llvm::none_of(copies, [](const Copy &copy) { return copy.isAsync; }))
      stages = std::min(stages, 2u);
    for (Copy &copy : copies)
      remarkApplied(copy.source, kRingCopies,
                    counted(stages - 1, "iteration") + " ahead" +
                        (copy.isAsync ? "" : ", through registers, since no four bytes of it can be copied at once"));
    return !copies.empty();
  }

  void run() {
    Location loc = loop.getLoc();
    OpBuilder before(loop);
    for (Copy &copy : copies) {
      SharedType ring = ringOf(stages, copy.buffer.getResult().getType());
      copy.ring = AllocOp::create(before, loc, ring, IntegerAttr());
    }
    SmallVector<Value> now = counters.first();
    for (unsigned stage = 0; stage + 1 < stages; ++stage) {
      Value counter = counterAfter(before, loop, loop.getLowerBound(), stage);
      fill(before, before, counter, now, constant(before, stage), /*isAhead=*/false);
      now = counters.next(before, now);
    }
    unsigned carried = loop.getNumRegionIterArgs();
    SmallVector<Value> firsts = {constant(before, 0), constant(before, stages - 1)};
    // Counters that only the copies need run ahead themselves.
    bool areOwn = areForCopiesOnly();
    if (areOwn)
      for (auto [number, value] : llvm::zip_equal(counters.numbers, now))
        loop.getInitArgsMutable()[number].set(value);
    else
      firsts.append(now);
    loop = carryAlso(loop, firsts, [&](OpBuilder &builder, ArrayRef<BlockArgument> slots) {
      SmallVector<Value> result = {slotAfter(builder, loc, slots[0], stages), slots[0]};
      if (!areOwn)
        result.append(counters.next(builder, SmallVector<Value>(slots.drop_front(2).begin(), slots.end())));
      return result;
    });
    counters.loop = loop;
    Value read = loop.getRegionIterArg(carried), write = loop.getRegionIterArg(carried + 1);
    now.assign(loop.getRegionIterArgs().drop_front(carried + 2).begin(), loop.getRegionIterArgs().end());
    if (areOwn)
      now = llvm::map_to_vector(counters.numbers,
                                [&](unsigned number) -> Value { return loop.getRegionIterArg(number); });

    auto top = OpBuilder::atBlockBegin(loop.getBody()), bottom = OpBuilder::atBlockTerminator(loop.getBody());
    if (hasAsync())
      AsyncWaitOp::create(top, loc, stages - 2);
    BarrierOp::create(top, loc);
    SmallVector<Value> slots;
    for (Copy &copy : copies)
      slots.push_back(SlotOp::create(top, loc, copy.buffer.getResult().getType(), copy.ring, read));
    fill(top, bottom, counterAfter(top, loop, loop.getInductionVar(), stages - 1), now, write, /*isAhead=*/true);
    for (auto [copy, slot] : llvm::zip_equal(copies, slots)) {
      copy.buffer.getResult().replaceAllUsesWith(slot);
      copy.store.erase();
      copy.source->erase();
      copy.buffer.erase();
    }
    if (hasAsync()) {
      OpBuilder after(loop->getContext());
      after.setInsertionPointAfter(loop);
      AsyncWaitOp::create(after, loc, 0);
    }
  }

private:
  template <typename Source> void find(Source source, LocalStoreOp store, AllocOp buffer, const TargetModel &target) {
    ResultOrWhy<SmallVector<Operation *>> address = addressOf(source, loop, counters);
    if (!address)
      return remarkRefused(source, kRingCopies, address.why());
    bool isAsync = canCopyAsync(source, buffer.getResult().getType(), target);
    copies.push_back({source, std::move(*address), store, buffer, isAsync});
  }

  Value constant(OpBuilder &builder, int64_t value) {
    return arith::ConstantIndexOp::create(builder, loop.getLoc(), value);
  }
  /// Returns whether the carried counters are used only by addresses of copies and by their own next values.
  bool areForCopiesOnly() {
    llvm::SmallPtrSet<Operation *, 32> known(counters.step.begin(), counters.step.end());
    for (Copy &copy : copies) {
      known.insert(copy.source);
      known.insert_range(copy.address);
    }
    SmallVector<Value> made;
    for (unsigned number : counters.numbers) {
      if (!loop.getResult(number).use_empty())
        return false;
      made.push_back(loop.getRegionIterArg(number));
    }
    for (size_t i = 0; i < made.size(); ++i)
      for (Operation *user : made[i].getUsers()) {
        if (isa<scf::YieldOp>(user))
          continue;
        if (!known.contains(user))
          return false;
        bool isSource = llvm::any_of(copies, [&](Copy &copy) { return copy.source == user; });
        if (!isSource && !llvm::is_contained(made, user->getResult(0)))
          llvm::append_range(made, user->getResults());
      }
    // The counters alone may be carried to the next iteration.
    for (auto [number, next] : llvm::enumerate(loop.getYieldedValues()))
      if (!llvm::is_contained(counters.numbers, number) && llvm::is_contained(made, next))
        return false;
    return !counters.numbers.empty();
  }

  bool hasAsync() const {
    return llvm::any_of(copies, [](const Copy &copy) { return copy.isAsync; });
  }

  /// Fills slot `index` for the iteration with the loop counter `counter` and the carried counters `now`. Loads and
  /// copies are placed at `top`, stores at `bottom`.
  void fill(OpBuilder &top, OpBuilder &bottom, Value counter, ValueRange now, Value index, bool isAhead) {
    Location loc = loop.getLoc();
    Value inside = arith::CmpIOp::create(top, loc, arith::CmpIPredicate::slt, counter, loop.getUpperBound());
    for (Copy &copy : copies) {
      Value slot = SlotOp::create(top, loc, copy.buffer.getResult().getType(), copy.ring, index);
      IRMapping mapping;
      mapping.map(loop.getInductionVar(), counter);
      counters.map(mapping, now);
      for (Operation *op : copy.address)
        top.clone(*op, mapping);
      if (!copy.isAsync) {
        LocalStoreOp::create(bottom, loc, top.clone(*copy.source, mapping)->getResult(0), slot, isAhead);
        continue;
      }
      Value view = mapping.lookupOrDefault(copy.source->getOperand(0));
      auto mapped = [&](OperandRange values) {
        return llvm::map_to_vector(values, [&](Value value) { return mapping.lookupOrDefault(value); });
      };
      if (auto gather = dyn_cast<tile::GatherOp>(copy.source)) {
        AsyncGatherOp::create(top, loc, view, mapped(gather.getIndices()), inside, slot);
        continue;
      }
      auto load = cast<tile::LoadOp>(copy.source);
      auto layout = LayoutAttr::get(top.getContext(), layoutOf(load.getResult()));
      AsyncCopyOp::create(top, loc, view, mapped(load.getOffsets()), layout, inside, slot);
    }
    if (hasAsync())
      AsyncCommitOp::create(top, loc);
  }

  scf::ForOp loop;
  unsigned stages;
  CarriedCounters counters;
  SmallVector<Copy> copies;
};

struct RingCopies final : impl::KgpuRingCopiesBase<RingCopies> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    unsigned stages = getLaunch(kernel).stages;
    for (scf::ForOp loop : opsIn<scf::ForOp>(kernel))
      if (Pipelining pipelining(loop, stages); pipelining.find(targetOf(kernel)))
        pipelining.run();
  }
};
} // namespace
} // namespace kpkg::kgpu
