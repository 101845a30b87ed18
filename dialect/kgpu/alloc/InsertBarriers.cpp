// Inserts barriers between accesses of different threads to the same bytes of shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: kgpu.local_store %p, %m            After: kgpu.local_store %p, %m
//         %q = kgpu.local_load %m                   kgpu.barrier
//                                                   %q = kgpu.local_load %m
//
// On entry: buffers have offsets.
// On exit: conflicting accesses are separated by a barrier on every path, including back edges of loops. Accesses
// conflict if different threads access the same byte and one of them writes. Atomic updates do not conflict with each
// other.
//
// The pass walks the structured control flow with the accesses that are pending since the last barrier. It walks loops
// until the pending accesses do not change. Copies into a slot of a ring run ahead of reads. The pass that creates a
// ring inserts the barrier that each iteration needs.
//
// A CTA must not write to the shared memory of a CTA that has not started. So the cluster waits for all of its CTAs
// before the first such write, after the loads before it are issued.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/ir/Walks.h"
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

  /// Returns whether `other` accesses another slot of the ring that this access fills: in the same iteration or before
  /// the loop.
  bool runsAheadOf(const Pending &other) const {
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    if (scope != SharedMemoryAccess::Scope::Ring || buffer != other.buffer)
      return false;
    // Two accesses that fill the same slot are separated by the barrier for its readers.
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
    if (scope == SharedMemoryAccess::Scope::Update && other.scope == SharedMemoryAccess::Scope::Update)
      return false;
    // Threads that access a buffer through the same private layout access different bytes.
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

/// Forgets the accesses that a barrier of the CTA separates from later ones.
void forgetCta(State &state) {
  llvm::erase_if(state, [](const Pending &pending) { return pending.scope != SharedMemoryAccess::Scope::Cluster; });
}

class Inserter {
public:
  explicit Inserter(tile::KernelOp kernel) : hasSeveralWarps(getLaunch(kernel).threads > targetOf(kernel).warpSize) {}

  /// Walks `block` with the pending accesses `state`, inserts missing barriers, and updates `state` to the block's
  /// end.
  void walk(Block &block, State &state) {
    for (Operation &op : llvm::make_early_inc_range(block))
      visit(&op, state);
  }

private:
  void visit(Operation *op, State &state) {
    if (isa<BarrierOp>(op))
      return forgetCta(state);
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
    State own;
    for (const SharedMemoryAccess &one : sharedAccessesOf(op)) {
      auto alloc = rootBuffer(one.buffer).getDefiningOp<AllocOp>();
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
      forgetCta(state);
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
    // The first walk finds accesses that are pending at the end of an iteration; later walks start with them.
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
  auto isOfCluster = [](const SharedMemoryAccess &one) { return one.scope == SharedMemoryAccess::Scope::Cluster; };
  return isa<ExchangeOp>(op) || llvm::any_of(sharedAccessesOf(op), isOfCluster);
}

/// Inserts a barrier so that all CTAs of the cluster run before a remote access to one of them.
void waitForCluster(Block &body) {
  Operation *lastLoad = nullptr;
  for (Operation &op : body) {
    if (isa<tile::LoadOp, AsyncCommitOp, ExchangeInitOp>(op))
      lastLoad = &op;
    if (!containsOp(&op, isRemote))
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
    auto hasOffset = [](AllocOp op) {
      return op.getOffset() ? success() : op.emitOpError("has no offset: run kgpu-alloc-smem before");
    };
    if (failed(forEachOp<AllocOp>(getOperation(), hasOffset)))
      return signalPassFailure();
    waitForCluster(getOperation().getBody().front());
    State state;
    Inserter(getOperation()).walk(getOperation().getBody().front(), state);
  }
};

} // namespace
} // namespace kpkg::kgpu
