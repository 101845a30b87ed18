// Barriers between accesses to shared memory that touch the same bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: kgpu.local_store %p, %m            After: kgpu.local_store %p, %m
//         %q = kgpu.local_load %m                   kgpu.barrier
//                                                   %q = kgpu.local_load %m
//
// On entry: buffers have offsets. On exit: between two accesses of different threads to the same byte, one of them a
// write, there is a barrier on every path, back edges of loops included. Walks the structured control flow with the
// accesses that are pending since the last barrier; loops are walked until nothing changes.
//
// Copies into a slot of a ring run ahead of what reads it; who makes a ring puts the barrier that each iteration needs.
//
// A CTA must not write to the memory of another one that does not run yet: before the first such write the cluster
// waits for all of its CTAs, once the loads before it are on their way.
#include "dialect/kgpu/Passes.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;

namespace kpkg::kgpu {

#define GEN_PASS_DEF_KGPUINSERTBARRIERS
#include "dialect/kgpu/Passes.h.inc"

namespace {

/// An access that no barrier has followed yet.
struct Pending {
  int64_t begin, end; ///< bytes of the CTA's shared memory
  bool isWrite;
  SharedMemoryAccess::Scope scope;
  Value buffer;
  Operation *op;
  bool operator==(const Pending &other) const = default;

  /// Whether `other` is about another slot of the ring that this fills: in the same iteration, or in front of the loop.
  bool runsAheadOf(const Pending &other) const {
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    if (scope != SharedMemoryAccess::Scope::Ring || buffer != other.buffer)
      return false;
    // Between two that fill the same slot there is a barrier for those who read it.
    if (other.scope == SharedMemoryAccess::Scope::Ring)
      return true;
    if (!loop)
      return false;
    Block *block = other.op->getBlock();
    return block == loop.getBody() || (block == loop->getBlock() && other.op->isBeforeInBlock(loop));
  }

  bool conflictsWith(const Pending &other) const {
    if ((!isWrite && !other.isWrite) || begin >= other.end || other.begin >= end)
      return false;
    if (runsAheadOf(other) || other.runsAheadOf(*this))
      return false;
    // Threads that reach a buffer in the same private way do not meet.
    bool isPrivate = scope == SharedMemoryAccess::Scope::Thread && other.scope == SharedMemoryAccess::Scope::Thread;
    return !(isPrivate && buffer == other.buffer);
  }
};

using State = SmallVector<Pending>;

void join(State &state, const State &other) {
  for (const Pending &pending : other)
    if (!llvm::is_contained(state, pending))
      state.push_back(pending);
}

Value rootOf(Value buffer) {
  while (Value whole = aliasedBuffer(buffer.getDefiningOp()))
    buffer = whole;
  return buffer;
}

class Inserter {
public:
  explicit Inserter(tile::KernelOp kernel) : hasSeveralWarps(getLaunch(kernel).threads > targetOf(kernel).warpSize) {}

  /// Walks `block` from `state`, inserts what is missing, and leaves what is pending at its end.
  void walk(Block &block, State &state) {
    for (Operation &op : llvm::make_early_inc_range(block))
      visit(&op, state);
  }

private:
  void visit(Operation *op, State &state) {
    if (isa<BarrierOp>(op)) {
      llvm::erase_if(state, [](const Pending &pending) { return pending.scope != SharedMemoryAccess::Scope::Cluster; });
      return;
    }
    if (auto barrier = dyn_cast<ClusterBarrierOp>(op)) {
      if (!barrier.getRelaxed())
        state.clear();
      return;
    }
    if (op->getNumRegions() != 0 &&
        !isa<tile::ReduceOp, tile::CombineOp, tile::ScanOp, PartialCombineOp, PartialScanOp, PutBeforeOp>(op)) {
      isa<LoopLikeOpInterface>(op) ? visitLoop(op, state) : visitBranches(op, state);
      return;
    }
    auto access = dyn_cast<SharedAccessOpInterface>(op);
    if (!access)
      return;
    State own;
    SmallVector<SharedMemoryAccess> accesses;
    access.getSharedAccesses(accesses);
    for (const SharedMemoryAccess &one : accesses) {
      auto alloc = rootOf(one.buffer).getDefiningOp<AllocOp>();
      int64_t begin = *alloc.getOffset();
      own.push_back({begin, begin + cast<SharedType>(alloc.getResult().getType()).getSizeBytes(), one.isWrite,
                     one.scope, alloc.getResult(), op});
    }
    bool needsCluster = false, needsBarrier = false;
    for (const Pending &pending : state)
      for (const Pending &mine : own)
        if (pending.conflictsWith(mine)) {
          bool isRemote =
              pending.scope == SharedMemoryAccess::Scope::Cluster || mine.scope == SharedMemoryAccess::Scope::Cluster;
          (isRemote ? needsCluster : needsBarrier) = true;
        }
    OpBuilder builder(op);
    if (needsCluster) {
      ClusterBarrierOp::create(builder, op->getLoc(), /*relaxed=*/false);
      state.clear();
    } else if (needsBarrier) {
      if (hasSeveralWarps)
        BarrierOp::create(builder, op->getLoc());
      else
        WarpBarrierOp::create(builder, op->getLoc());
      llvm::erase_if(state, [](const Pending &pending) { return pending.scope != SharedMemoryAccess::Scope::Cluster; });
    }
    join(state, own);
  }

  void visitBranches(Operation *op, State &state) {
    State after;
    bool mayPass = false;
    for (Region &region : op->getRegions()) {
      State inner = state;
      if (region.empty())
        mayPass = true;
      else
        walk(region.front(), inner);
      join(after, inner);
    }
    if (mayPass)
      join(after, state);
    state = after;
  }

  void visitLoop(Operation *op, State &state) {
    // The first walk finds what an iteration leaves; the next ones see it at their beginning.
    for (size_t known = ~size_t(0); known != state.size();) {
      known = state.size();
      State inner = state;
      for (Region &region : op->getRegions())
        walk(region.front(), inner);
      join(state, inner);
    }
  }

  bool hasSeveralWarps;
};

bool isRemote(Operation *op) {
  if (isa<ExchangeOp>(op))
    return true;
  auto access = dyn_cast<SharedAccessOpInterface>(op);
  if (!access)
    return false;
  SmallVector<SharedMemoryAccess> accesses;
  access.getSharedAccesses(accesses);
  return llvm::any_of(accesses,
                      [](const SharedMemoryAccess &one) { return one.scope == SharedMemoryAccess::Scope::Cluster; });
}

/// Makes sure that all CTAs of the cluster run before one of them is written to.
void waitForCluster(Block &body) {
  Operation *lastLoad = nullptr;
  for (Operation &op : body) {
    if (isa<tile::LoadOp, AsyncCommitOp, ExchangeInitOp>(op))
      lastLoad = &op;
    if (!op.walk([](Operation *inner) {
             return isRemote(inner) ? WalkResult::interrupt() : WalkResult::advance();
           }).wasInterrupted())
      continue;
    OpBuilder builder(body.getParentOp()->getContext());
    if (lastLoad)
      builder.setInsertionPointAfter(lastLoad);
    else
      builder.setInsertionPointToStart(&body);
    ClusterBarrierOp::create(builder, op.getLoc(), /*relaxed=*/true);
    return;
  }
}

struct InsertBarriers final : impl::KgpuInsertBarriersBase<InsertBarriers> {
  void runOnOperation() override {
    WalkResult allocated = getOperation().walk([](AllocOp op) {
      if (op.getOffset())
        return WalkResult::advance();
      op.emitOpError("has no offset: run kgpu-alloc-smem before");
      return WalkResult::interrupt();
    });
    if (allocated.wasInterrupted())
      return signalPassFailure();
    waitForCluster(getOperation().getBody().front());
    State state;
    Inserter(getOperation()).walk(getOperation().getBody().front(), state);
  }
};

} // namespace
} // namespace kpkg::kgpu
