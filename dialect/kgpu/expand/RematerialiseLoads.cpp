// Reads fetched elements again after a wait for other threads, if registers cannot hold them meanwhile.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for ... {
//           kgpu.async_wait 1
//           %v = kgpu.fetched %slot ...
//           kgpu.fetch ... to %slot;  kgpu.async_commit
//           %a = f(%v);  %s = tile.reduce sum %a axis 1   // across warps
//           use %a, %s
//         }
// After:  scf.for ... {
//           kgpu.async_wait 1
//           %v = kgpu.fetched %slot ...
//           %a = f(%v);  %s = tile.reduce sum %a axis 1
//           %w = kgpu.fetched %slot ...
//           kgpu.fetch ... to %slot;  kgpu.async_commit
//           %b = f(%w);  use %b, %s
//         }
//
// On entry: reductions that share an exchange are adjacent. Loops without `kgpu.fetched`, or that carry no tiles, are
// not changed.
// On exit: a thread reads its fetched elements again after the last reduction across warps, and repeats the
// computation on them. This is done if these elements and the values that the loop carries exceed the thread's
// registers.
//
// A register allocator cannot do this by itself: it treats a value that it has seen as one value. If this is not
// enough, tiles that are loaded before the loop are also fetched to shared memory, and read from there likewise.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/LoadAhead.h"
#include "dialect/kgpu/ir/Partial.h"
#include "dialect/kgpu/ir/Remarks.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUREMATERIALISELOADS
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// Registers of a thread for addresses, predicates, partial sums and elementwise temporaries.
constexpr unsigned kOtherRegisters = 40;

bool waitsForWarps(Operation &op) {
  auto reduce = dyn_cast<tile::ReduceOp>(op);
  return reduce && !isWithinWarp(layoutOf(reduce.getValue()), reduce.getAxis());
}

/// Returns the 32-bit registers of a value. Narrow elements are widened before use.
unsigned registersOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? layoutOf(type).registers() * std::max<unsigned>(1, elementBytes(type.getElementType()) / 4) : 0;
}

class Rematerialisation {
public:
  Rematerialisation(scf::ForOp loop, const Launch &launch, const TargetModel &target)
      : loop(loop), launch(launch), target(target) {}

  /// Finds the values that a thread holds across a wait, or returns why it need not read them again.
  WhyNot whyNot() {
    for (Operation &op : *loop.getBody())
      if (waitsForWarps(op))
        wait = &op;
    bool carries =
        llvm::any_of(loop.getRegionIterArgs(), [](Value value) { return isa<RankedTensorType>(value.getType()); });
    if (!wait)
      return "no reduction waits for other warps";
    if (!carries)
      return "the loop carries no tile, so that registers suffice";
    if (!findHeld())
      return "nothing that is loaded is used after the last wait for other warps";
    if (unsigned count = needed(/*rematerialises=*/false); count <= available())
      return "a thread has " + std::to_string(available()) + " registers, and needs about " + std::to_string(count);
    return std::nullopt;
  }

  void run() {
    if (needed(/*rematerialises=*/true) > available() && park()) {
      held.clear();
      later.clear();
      findHeld();
    }
    OpBuilder builder(loop.getContext());
    builder.setInsertionPointAfter(wait);
    for (Operation *fetched : held)
      last = mapping[fetched->getResult(0)] = builder.clone(*fetched)->getResult(0);
    moveFetches();
    for (Operation *user : later)
      for (OpOperand &operand : user->getOpOperands())
        if (isMadeOfFetched(operand.get())) {
          OpBuilder before(user);
          operand.set(again(before, operand.get()));
        }
  }

private:
  /// Returns whether a value from before the wait can be recomputed cheaply from fetched elements.
  bool isMadeOfFetched(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || op->getBlock() != loop.getBody() || !isa<RankedTensorType>(value.getType()) ||
        wait->isBeforeInBlock(op) || op == wait)
      return false;
    if (isa<FetchedOp>(op))
      return true;
    return isRepeated(op) && llvm::any_of(op->getOperands(), [&](Value operand) { return isMadeOfFetched(operand); });
  }

  static bool isRepeated(Operation *op) {
    return isMemoryEffectFree(op) &&
           (op->hasTrait<OpTrait::Elementwise>() || isa<tile::BroadcastOp, tile::ReshapeOp>(op));
  }

  void collect(Value value) {
    Operation *op = value.getDefiningOp();
    if (isa<FetchedOp>(op)) {
      held.insert(op);
      return;
    }
    for (Value operand : op->getOperands())
      if (isMadeOfFetched(operand))
        collect(operand);
  }

  bool findHeld() {
    for (Operation *op = wait->getNextNode(); op; op = op->getNextNode()) {
      bool takes = llvm::any_of(op->getOperands(), [&](Value operand) { return isMadeOfFetched(operand); });
      if (!takes)
        continue;
      later.push_back(op);
      for (Value operand : op->getOperands())
        if (isMadeOfFetched(operand))
          collect(operand);
    }
    return !held.empty();
  }

  unsigned available() const {
    return std::min(target.maxRegisters, target.registersPerSm / (launch.threads * std::max(launch.minCtas, 1u)));
  }

  /// Returns the tiles from before the loop that the loop uses.
  SmallVector<Value> valuesFromBefore() {
    llvm::SetVector<Value> values;
    loop.getBody()->walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (Operation *from = operand.getDefiningOp(); from && isa<RankedTensorType>(operand.getType()) &&
                                                       !loop->isAncestor(from) &&
                                                       !from->hasTrait<OpTrait::ConstantLike>())
          values.insert(operand);
    });
    return values.takeVector();
  }

  /// Returns the registers that a thread needs. Rematerialised elements are still narrow.
  unsigned needed(bool rematerialises) {
    unsigned count = kOtherRegisters;
    for (Operation *fetched : held)
      count += rematerialises ? registersOf(fetched->getResult(0)) *
                                    elementBytes(getElementTypeOrSelf(fetched->getResult(0).getType())) / 4
                              : registersOf(fetched->getResult(0));
    for (Value carried : loop.getRegionIterArgs())
      count += registersOf(carried);
    for (Value value : valuesFromBefore())
      count += registersOf(value);
    return count;
  }

  /// Returns the ops that compute `value` from one load before the loop, the load first. Returns none if other ops are
  /// needed.
  SmallVector<Operation *> wayFromLoad(Value value) {
    SmallVector<Operation *> way;
    for (Operation *op = value.getDefiningOp(); op && op->getBlock() == loop->getBlock();
         op = op->getOperand(0).getDefiningOp()) {
      way.push_back(op);
      if (auto load = dyn_cast<tile::LoadOp>(op)) {
        bool isRead = !cast<tile::ViewType>(load.getView().getType()).getIsMut();
        return isRead && !whyNotFetched(load) ? SmallVector<Operation *>(llvm::reverse(way))
                                              : SmallVector<Operation *>();
      }
      if (!isRepeated(op) || op->getNumOperands() != 1)
        break;
    }
    return {};
  }

  /// Fetches tiles that are loaded before the loop, and reads them in each iteration. Returns whether there were any.
  bool park() {
    bool parked = false;
    for (Value value : valuesFromBefore()) {
      SmallVector<Operation *> way = wayFromLoad(value);
      if (way.empty())
        continue;
      auto load = cast<tile::LoadOp>(way.front());
      Location loc = load.getLoc();
      OpBuilder before(load), top = OpBuilder::atBlockBegin(loop.getBody());
      Value place = AllocOp::create(before, loc, slotFor(load, launch.threads), IntegerAttr()),
            always = arith::ConstantIntOp::create(before, loc, 1, 1);
      FetchOp::create(before, loc, load.getView(), load.getOffsets(), TypeAttr::get(load.getType()), always, place);
      AsyncCommitOp::create(before, loc);
      for (Operation &op : *loop.getBody())
        if (isa<AsyncWaitOp>(op))
          top.setInsertionPointAfter(&op);
      IRMapping made;
      made.map(load.getResult(),
               FetchedOp::create(top, loc, load.getType(), place, load.getView(), load.getOffsets(), load.getFill())
                   .getResult());
      for (Operation *op : llvm::drop_begin(way))
        top.clone(*op, made);
      Value inLoop = made.lookup(value);
      value.replaceUsesWithIf(inLoop, [&](OpOperand &use) {
        return loop->isProperAncestor(use.getOwner()) && use.getOwner() != inLoop.getDefiningOp();
      });
      for (Operation *op : llvm::reverse(way))
        if (op->use_empty())
          op->erase();
      parked = true;
    }
    return parked;
  }

  /// Recomputes the value from elements that were read again.
  Value again(OpBuilder &builder, Value value) {
    if (Value known = mapping.lookup(value))
      return known;
    if (!isMadeOfFetched(value))
      return value;
    IRMapping operands;
    for (Value operand : value.getDefiningOp()->getOperands())
      operands.map(operand, again(builder, operand));
    return mapping[value] = builder.clone(*value.getDefiningOp(), operands)->getResult(0);
  }

  /// Moves fetches after the last read of their slots.
  void moveFetches() {
    SmallVector<Operation *> moved;
    for (Operation &op : *loop.getBody())
      if (isa<FetchOp, AsyncCommitOp>(op))
        moved.push_back(&op);
    Operation *place = last.getDefiningOp();
    for (Operation *op : moved) {
      op->moveAfter(place);
      place = op;
    }
  }

  scf::ForOp loop;
  Launch launch;
  const TargetModel &target;
  Operation *wait = nullptr;
  llvm::SetVector<Operation *> held; ///< fetched tiles that are used after the wait
  SmallVector<Operation *> later;    ///< ops that use values computed from them
  DenseMap<Value, Value> mapping;
  Value last;
};

constexpr Optimisation kAgain{"kgpu-rematerialise-loads", "registers saved by reading data again"};

struct RematerialiseLoads final : impl::KgpuRematerialiseLoadsBase<RematerialiseLoads> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    kernel.walk([&](scf::ForOp loop) {
      if (loop.getBody()->getOps<FetchedOp>().empty())
        return;
      Rematerialisation rematerialisation(loop, getLaunch(kernel), targetOf(kernel));
      if (remarkOn(loop, kAgain, rematerialisation.whyNot(),
                   "threads read it again after they have waited for other warps"))
        rematerialisation.run();
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
