// Checks that the roles of a kernel agree on every ring: there is no deadlock and no race between copies and reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On entry: any stage after kgpu-specialise-warps. The pass changes nothing. When it succeeds, each ring has these
// properties:
//  * Roles use it in the same order and the same number of times. Their loops have the same bounds, and each role
//    counts 0, 1, 2, ...
//  * With three roles, one order of uses fits all of them.
//  * A published tile goes to the slot of its use, which the consumers await, read and release.
//  * Loops of the dynamic tile scheduler get the same tile numbers in both roles: the producer warp publishes a number
//    at the end of each iteration, and the consumers take it.
//  * CTAs of a cluster that multicast to each other use the ring equally often, copy from the same position, and wait
//    for the warpgroups of all CTAs.
//  * A use is acquired, and copies fill its own slot with the announced number of bytes, without overlap.
//  * A use is awaited, perhaps cleared in part, read and released. All products that read the slot are waited for
//    first.
//  * A tile that warpgroups share is awaited in the iteration that publishes it or a later one. The ring has enough
//    slots for the delay.
//  * A warpgroup waits for its ping-pong turn and then passes it on, in every iteration of every loop.
//  * Until a product's result is waited for, only further products use it.
//
// For a use, a role waits only for steps of the other role for the same use. Both roles count uses in the same order,
// so neither waits forever on one ring. Roles could still deadlock if their orders of different rings were apart by
// more uses than a ring has slots. So that order must be the same too.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/ClusterTiles.h"
#include "dialect/kgpu/analysis/Dependents.h"
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/kgpu/verify/RoleOrder.h"
#include "dialect/kgpu/verify/VerifyingPass.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUVERIFYSCHEDULE
#include "dialect/kgpu/Passes.h.inc"

namespace {
class Verifier {
public:
  explicit Verifier(tile::KernelOp kernel) : kernel(kernel) {}

  LogicalResult run() {
    RolesOp roles;
    kernel.walk([&](RolesOp op) { roles = op; });
    SmallVector<RingOp> rings = opsIn<RingOp>(kernel);
    if (!roles)
      return rings.empty() ? success() : LogicalResult(rings.front().emitOpError("is in a kernel without roles"));
    Block &load = roles.getProducerWarp().front(), &compute = roles.getConsumers().front();
    if (failed(verifyClusters(roles, rings)))
      return failure();
    for (RingOp ring : rings)
      for (Region *role : {&roles.getProducerWarp(), &roles.getConsumers(), &roles.getProducers()})
        if (!role->empty() && failed(verifyCounts(ring, role->front())))
          return failure();
    if (failed(verifyRoleOrder(roles)))
      return failure();
    FailureOr<bool> holds = verifyTurns(compute, false);
    if (failed(holds))
      return failure();
    if (*holds)
      return roles.emitOpError("ends in a turn that is not passed on");
    if (failed(verifyCopies(load)) || failed(verifyShared(compute)))
      return failure();
    if (roles.getProducers().empty())
      return verifyReads(compute);
    return failure(failed(verifyPublished(roles)) || failed(verifyReads(compute)) ||
                   failed(verifyReads(roles.getProducers().front())));
  }

private:
  // Clusters

  /// Checks that all CTAs of a cluster use its rings in the same loops and equally often.
  LogicalResult verifyClusters(RolesOp roles, ArrayRef<RingOp> rings) {
    differing = differingInCluster(kernel);
    if (llvm::none_of(rings, [](RingOp ring) { return ring.getKind() == RingKind::Cluster; }))
      return success();
    if (getLaunch(kernel).cluster < 2)
      return roles.emitOpError("has rings of a cluster, which the kernel has not");
    for (auto loop : opsIn<scf::ForOp>(kernel)) {
      bool isUsed = hasBoundIn(loop, differing) && llvm::any_of(rings, [&](RingOp ring) {
                      return ring.getKind() == RingKind::Cluster && containsUse(loop, ring);
                    });
      if (isUsed)
        return loop.emitOpError("may run more often in one CTA of a cluster than in another, with copies for both");
    }
    return success();
  }

  /// Checks that the parts that CTAs multicast fit together and come from the same position.
  LogicalResult verifyMulticast(TensorLoadOp load, TensorMapAttr map) {
    auto ring = load.getRing().getDefiningOp<RingOp>();
    if (!ring || ring.getKind() != RingKind::Cluster)
      return load.emitOpError("fills slots of other CTAs, whose warpgroups do not release them for this one");
    auto view = load.getView().getType();
    SmallVector<int64_t> whole(map.getBox());
    whole[*load.getMulticast()] *= getLaunch(kernel).cluster;
    std::optional<SharedBox> box = sharedBox(whole, view.getUnit(), view.getElementBytes(), getLaunch(kernel).cluster);
    if (!box || box->dim != *load.getMulticast() || map.getWindow())
      return load.emitOpError() << "brings parts along dimension " << *load.getMulticast()
                                << " that do not lie behind each other";
    if (llvm::any_of(load.getOffsets(), [&](Value offset) { return differing.contains(offset); }))
      return load.emitOpError("brings a part of something else than other CTAs of the cluster");
    return success();
  }

  /// Checks that an op fills the slot of its use, in a buffer of its ring.
  template <typename Op> LogicalResult verifySlot(Op op) {
    if (!isSlotOf(op.getBuffer(), op.getUse()))
      return op.emitOpError("fills another slot than that of its use");
    Value all = op.getBuffer().template getDefiningOp<SlotOp>().getBuffer();
    auto [known, isNew] = ringOf.try_emplace(all, op.getRing());
    if (!isNew && known->second != op.getRing())
      return op.emitOpError("fills a buffer of another ring");
    return success();
  }

  LogicalResult verifyPublished(RolesOp roles) {
    for (PublishOp publish : opsIn<PublishOp>(roles.getProducers())) {
      RingOp ring = publish.getRing().getDefiningOp<RingOp>();
      if (!ring || ring.getKind() != RingKind::Published)
        return publish.emitOpError("signals a ring that others fill");
      if (failed(verifySlot(publish)))
        return failure();
    }
    return success();
  }

  // Turns

  /// Returns whether a warpgroup has its ping-pong turn after the block, given whether it has it before.
  static FailureOr<bool> verifyTurns(Block &block, bool holds) {
    for (Operation &op : block) {
      if (isa<PingPongWaitOp, PingPongSignalOp>(op)) {
        if (isa<PingPongSignalOp>(op) != holds)
          return op.emitOpError(holds ? "awaits a turn within another one" : "passes on a turn that was not awaited");
        holds = !holds;
      }
      for (Region &region : op.getRegions())
        for (Block &inner : region) {
          FailureOr<bool> after = verifyTurns(inner, holds);
          if (failed(after))
            return failure();
          if (*after != holds)
            return op.emitOpError("begins and ends differently in a turn");
        }
    }
    return holds;
  }

  // Copies

  struct Filling {
    AcquireOp acquire;
    int64_t missing = 0;
    SmallVector<std::tuple<Value, int64_t, int64_t>> parts; ///< buffer, first byte, end
  };

  LogicalResult verifyCopies(Block &block) {
    SmallVector<Filling> open;
    auto finish = [&](Filling &filling) {
      if (filling.missing == 0)
        return success();
      return LogicalResult(filling.acquire.emitOpError()
                           << "announces " << filling.missing << " bytes that no copy brings");
    };
    for (Operation &op : block) {
      if (auto acquire = dyn_cast<AcquireOp>(op)) {
        for (Filling &filling : open)
          if (filling.acquire.getRing() == acquire.getRing() && failed(finish(filling)))
            return failure();
        llvm::erase_if(open, [&](Filling &filling) { return filling.acquire.getRing() == acquire.getRing(); });
        open.push_back({acquire, int64_t(acquire.getBytes()), {}});
      } else if (auto load = dyn_cast<TensorLoadOp>(op)) {
        if (failed(verifyCopy(load, open)))
          return failure();
      } else if (CarryingLoop loop = carryingLoop(&op)) {
        if (failed(verifyCopies(*loop.body)))
          return failure();
      }
    }
    for (Filling &filling : open)
      if (failed(finish(filling)))
        return failure();
    return success();
  }

  LogicalResult verifyCopy(TensorLoadOp load, MutableArrayRef<Filling> open) {
    auto *filling = llvm::find_if(open, [&](Filling &one) { return one.acquire.getRing() == load.getRing(); });
    if (filling == open.end() || filling->acquire.getUse() != load.getUse())
      return load.emitOpError("signals a use that was not acquired before");
    if (failed(verifySlot(load)))
      return failure();
    ArrayRef<TensorMapAttr> maps = tensorMaps();
    if (load.getMap() >= maps.size())
      return load.emitOpError() << "uses tensor map " << load.getMap() << " of " << maps.size();
    if (!maps[load.getMap()].getWindow() != load.getTaps().empty())
      return load.emitOpError("is moved by taps where its map has no window, or the other way round");
    int64_t bytes = maps[load.getMap()].bytes(load.getView().getType().getElementBytes());
    if (load.getMulticast() && failed(verifyMulticast(load, maps[load.getMap()])))
      return failure();
    if (load.getMulticast()) // other CTAs copy the rest
      bytes *= getLaunch(kernel).cluster;
    int64_t begin = load.getDistance(), end = begin + bytes;
    Value all = load.getBuffer().getDefiningOp<SlotOp>().getBuffer();
    if (end > load.getBuffer().getType().getSizeBytes())
      return load.emitOpError() << "fills bytes up to " << end << " of " << load.getBuffer().getType().getSizeBytes();
    for (auto [buffer, first, last] : filling->parts)
      if (buffer == all && begin < last && first < end)
        return load.emitOpError("overwrites what another copy for the same use brings");
    filling->parts.push_back({all, begin, end});
    filling->missing -= bytes;
    if (filling->missing < 0)
      return load.emitOpError() << "brings " << -filling->missing << " bytes more than announced";
    return success();
  }

  ArrayRef<TensorMapAttr> tensorMaps() {
    if (maps.empty())
      maps = tensorMapsOf(kernel);
    return maps;
  }

  // What warpgroups share

  /// Checks the delay between publication and use that the description of kgpu.ring relies on. An iteration that
  /// publishes a use must await one for which the ring has enough slots.
  LogicalResult verifyShared(Block &block) {
    for (PublishAllOp publish : opsIn<PublishAllOp>(*block.getParent())) {
      RingOp ring = publish.getRing().getDefiningOp<RingOp>();
      int64_t slots = publish.getRing().getType().getSlots();
      if (!ring || ring.getKind() != RingKind::Shared)
        return publish.emitOpError("signals a ring that the load role fills");
      if (failed(verifySlot(publish)))
        return failure();
      auto awaits = publish->getBlock()->getOps<AwaitOp>();
      auto await = llvm::find_if(awaits, [&](AwaitOp one) { return one.getRing() == publish.getRing(); });
      if (await == awaits.end())
        return publish.emitOpError("never awaits what others share");
      UseCount shared = useCountOf(publish.getUse()), awaited = useCountOf((*await).getUse());
      int64_t delay = shared.offset - awaited.offset;
      if (shared.base != awaited.base || delay < 0 || !publish->isBeforeInBlock(*await))
        return (*await).emitOpError("is no use that warpgroups have shared by then");
      if (slots < 2 + 2 * delay)
        return publish.emitOpError() << "overwrites what others may read: products " << delay << " uses later need "
                                     << 2 + 2 * delay << " slots";
    }
    return success();
  }

  // Reads

  /// Checks reads of slots in a block. `around` holds the uses that are awaited before the block and not yet released.
  LogicalResult verifyReads(Block &block, ArrayRef<AwaitOp> around = {}) {
    SmallVector<AwaitOp> open(around);
    SmallVector<WgmmaOp> running;
    for (Operation &op : block) {
      if (auto await = dyn_cast<AwaitOp>(op)) {
        open.push_back(await);
      } else if (auto product = dyn_cast<WgmmaOp>(op)) {
        for (Value operand : {Value(product.getLhs()), Value(product.getRhs())})
          if (isa<SharedType>(operand.getType()) && !isOpen(operand, open) && !isOwn(product, operand))
            return product.emitOpError("reads a slot that was not awaited before, or is released");
        for (Operation *user : product->getUsers())
          if (!isa<WgmmaWaitOp>(user) &&
              !(isa<WgmmaOp>(user) && cast<WgmmaOp>(user).getAccumulator() == product.getResult()))
            return user->emitOpError("touches the result of a product that may still run");
        running.push_back(product);
      } else if (auto load = dyn_cast<LocalLoadOp>(op)) {
        auto slot = load.getBuffer().getDefiningOp<SlotOp>();
        if (slot && ringOf.contains(slot.getBuffer()) && !isOpen(load.getBuffer(), open))
          return load.emitOpError("reads a slot that was not awaited before, or is released");
      } else if (auto clear = dyn_cast<ClearOutsideOp>(op)) {
        if (!isOpen(clear.getBuffer(), open))
          return clear.emitOpError("changes a slot that was not awaited before, or is released");
        for (WgmmaOp product : running)
          if (llvm::is_contained(product->getOperands(), clear.getBuffer()))
            return clear.emitOpError("changes a slot that a product may still read");
      } else if (auto wait = dyn_cast<WgmmaWaitOp>(op)) {
        size_t done = running.size() - std::min<size_t>(running.size(), wait.getPending());
        running.erase(running.begin(), running.begin() + done);
      } else if (auto fence = dyn_cast<SchedulingFenceOp>(op)) {
        if (llvm::none_of(
                open, [&](AwaitOp one) { return one.getRing() == fence.getRing() && one.getUse() == fence.getUse(); }))
          return fence.emitOpError("names a use that was not awaited before, or is released");
      } else if (auto release = dyn_cast<ReleaseOp>(op)) {
        auto *await = llvm::find_if(
            open, [&](AwaitOp one) { return one.getRing() == release.getRing() && one.getUse() == release.getUse(); });
        if (await == open.end() || (*await)->getBlock() != &block)
          return release.emitOpError("releases a use that was not awaited before in the same block");
        for (WgmmaOp product : running)
          if (reads(product, release))
            return release.emitOpError("releases a slot that a product may still read");
        open.erase(await);
      } else if (CarryingLoop loop = carryingLoop(&op)) {
        if (failed(verifyReads(*loop.body, open)))
          return failure();
      }
    }
    llvm::erase_if(open,
                   [](AwaitOp await) { return await.getRing().getDefiningOp<RingOp>().getKind() == RingKind::Shared; });
    if (open.size() > around.size())
      return open.back().emitOpError("awaits a use that is not released in the same block");
    if (!running.empty())
      return running.front().emitOpError("is not waited for in its block");
    return success();
  }

  bool isOf(Value operand, Value ring, Value use) {
    if (auto transposed = operand.getDefiningOp<TransposeBufferOp>())
      operand = transposed.getBuffer();
    auto slot = operand.getDefiningOp<SlotOp>();
    return slot && isSlotOf(operand, use) && ringOf.lookup(slot.getBuffer()) == ring;
  }
  bool isOpen(Value operand, ArrayRef<AwaitOp> open) {
    return llvm::any_of(open, [&](AwaitOp await) { return isOf(operand, await.getRing(), await.getUse()); });
  }
  /// Returns whether the operand is the warpgroup's own rows of a tile that it published before.
  bool isOwn(WgmmaOp product, Value operand) {
    if (operand != product.getLhs() || operand.getDefiningOp<TransposeBufferOp>())
      return false;
    return llvm::any_of(product->getBlock()->getOps<PublishAllOp>(), [&](PublishAllOp publish) {
      return publish->isBeforeInBlock(product) && isOf(operand, publish.getRing(), publish.getUse());
    });
  }
  bool reads(WgmmaOp product, ReleaseOp release) {
    return isOf(product.getLhs(), release.getRing(), release.getUse()) ||
           isOf(product.getRhs(), release.getRing(), release.getUse());
  }

  tile::KernelOp kernel;
  SmallVector<TensorMapAttr> maps;
  DenseSet<Value> differing;     ///< values that differ between CTAs of a cluster
  DenseMap<Value, Value> ringOf; ///< keyed by the buffers that copies fill
};

struct VerifySchedule final : VerifyingPass<impl::KgpuVerifyScheduleBase<VerifySchedule>, Verifier> {};
} // namespace
} // namespace kpkg::kgpu
