// Checks that the roles of a kernel agree on every ring: no deadlock, nothing is read before it is there or overwritten
// while it is read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On entry: any stage after kgpu-split-roles. Nothing is changed. What holds when it passes, for each ring:
//  * roles use it in the same order, the same number of times: their loops have the same bounds, and each role counts
//  0, 1, 2, ...;
//  * where there are three, their uses are in one order, of which each role has some;
//  * a tile that one hands to the others goes to the slot of its use, which they await, read and release;
//  * loops over tiles that are taken from a counter get the same numbers in both roles: those that one sends, and the
//  other one receives, at the end of each;
//  * CTAs of a cluster that fill slots for each other use their ring as often as each other, from the same places, and
//  wait for the warpgroups
//    of all;
//  * a use is acquired, filled by copies that bring as many bytes as were announced, to its own slot, without overlap;
//  * it is awaited, perhaps cleared in part, then its slot is read, then it is released, and all products that read the
//  slot have been waited for before;
//  * what warpgroups share among themselves is awaited in the iteration that shares it or a later one, for which there
//  are slots;
//  * a warpgroup awaits its turn before it passes it on, in every iteration of every loop, and passes each one on;
//  * results of products are touched by nothing but further products until they have been waited for.
// A role waits for a use only of what the other role does for the same use, and all uses have one order in both: none
// waits for ever, unless the order of different rings differs between the roles by more uses than a ring has slots; so
// that order must be the same too.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/async/CarryingLoop.h"
#include "dialect/kgpu/async/RingUses.h"
#include "dialect/kgpu/ir/Repeatable.h"
#include "dialect/kgpu/schedule/ClusterTiles.h"
#include "dialect/kgpu/schedule/Dependents.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUVERIFYSCHEDULE
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// A use of some ring, or a loop around uses, in the order of the program.
struct Step {
  Operation *op = nullptr;
  Value ring;               ///< of a use
  std::vector<Step> inside; ///< of a loop
};
using Trace = std::vector<Step>;

class Verifier {
public:
  explicit Verifier(tile::KernelOp kernel) : kernel(kernel) {}

  LogicalResult run() {
    RolesOp roles;
    kernel.walk([&](RolesOp op) { roles = op; });
    SmallVector<RingOp> rings;
    kernel.walk([&](RingOp ring) { rings.push_back(ring); });
    if (!roles)
      return rings.empty() ? success() : LogicalResult(rings.front().emitOpError("is in a kernel without roles"));
    Block &load = roles.getLoad().front(), &compute = roles.getCompute().front();
    if (failed(verifyClusters(roles, rings)))
      return failure();
    for (RingOp ring : rings)
      for (Region *role : {&roles.getLoad(), &roles.getCompute(), &roles.getMake()})
        if (!role->empty() && failed(verifyCounts(ring, role->front())))
          return failure();
    if (failed(roles.getMake().empty() ? compare(trace(load), trace(compute), roles) : verifyThree(roles)))
      return failure();
    FailureOr<bool> holds = verifyTurns(compute, false);
    if (failed(holds))
      return failure();
    if (*holds)
      return roles.emitOpError("ends in a turn that is not passed on");
    if (failed(verifyCopies(load)) || failed(verifyShared(compute)))
      return failure();
    if (roles.getMake().empty())
      return verifyReads(compute);
    return failure(failed(verifyHanded(roles)) || failed(verifyReads(compute)) ||
                   failed(verifyReads(roles.getMake().front())));
  }

private:
  static bool isShared(Value ring) { return ring.getDefiningOp<RingOp>().getShared(); }

  // Clusters

  /// Rings of a cluster are used in the same loops by all its CTAs, as many times.
  LogicalResult verifyClusters(RolesOp roles, ArrayRef<RingOp> rings) {
    SmallVector<Value> ranks;
    kernel.walk([&](Operation *op) {
      if (isa<ClusterRankOp, CtaIdOp>(op))
        ranks.push_back(op->getResult(0));
    });
    differing = dependents(kernel, ranks);
    if (llvm::none_of(rings, [](RingOp ring) { return ring.getCluster(); }))
      return success();
    if (getLaunch(kernel).cluster < 2)
      return roles.emitOpError("has rings of a cluster, which the kernel has not");
    auto found = kernel.walk([&](scf::ForOp loop) {
      bool differs = differing.contains(loop.getLowerBound()) || differing.contains(loop.getUpperBound()) ||
                     differing.contains(loop.getStep());
      bool isUsed =
          differs && llvm::any_of(rings, [&](RingOp ring) { return ring.getCluster() && containsUse(loop, ring); });
      return isUsed ? WalkResult(loop.emitOpError(
                          "may run more often in one CTA of a cluster than in another, with copies for both"))
                    : WalkResult::advance();
    });
    return failure(found.wasInterrupted());
  }

  /// CTAs bring parts of what all of them need: the parts fit together, and are of the same place.
  LogicalResult verifyMulticast(TensorLoadOp load, TensorMapAttr map) {
    auto ring = load.getRing().getDefiningOp<RingOp>();
    if (!ring || !ring.getCluster())
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

  // The same order in both roles

  static Trace trace(Block &block) {
    Trace steps;
    for (Operation &op : block) {
      if (auto acquire = dyn_cast<AcquireOp>(op)) {
        steps.push_back({&op, acquire.getRing(), {}});
      } else if (auto await = dyn_cast<AwaitOp>(op); await && !isShared(await.getRing())) {
        steps.push_back({&op, await.getRing(), {}});
      } else if (isa<SendOp, ReceiveOp, HandOp>(op)) {
        steps.push_back({&op, ringOfUse(&op), {}});
      } else if (CarryingLoop loop = carryingLoop(&op)) {
        Trace inside = trace(*loop.body);
        if (!inside.empty())
          steps.push_back({&op, {}, std::move(inside)});
      }
    }
    return steps;
  }

  LogicalResult compare(const Trace &loads, const Trace &computations, Operation *around) {
    if (loads.size() != computations.size())
      return around->emitOpError() << "uses rings " << loads.size() << " times in the role that loads and "
                                   << computations.size() << " times in the one that computes";
    for (auto [load, compute] : llvm::zip(loads, computations)) {
      if (load.ring != compute.ring)
        return compute.op->emitOpError("comes where the role that loads uses another ring");
      if (load.op->getNumRegions() == 0)
        continue;
      if (!haveSameTurns(load.op, compute.op))
        return compute.op->emitOpError("runs for other values than the loop of the role that loads");
      if (failed(compare(load.inside, compute.inside, compute.op)))
        return failure();
    }
    return success();
  }

  // Three roles

  /// The uses of a role that are of these rings.
  static Trace restricted(const Trace &steps, const SetVector<Value> &rings) {
    Trace result;
    for (const Step &step : steps) {
      Step part{step.op, step.ring, restricted(step.inside, rings)};
      if (part.ring ? rings.contains(part.ring) : !part.inside.empty())
        result.push_back(std::move(part));
    }
    return result;
  }
  static void addRings(const Trace &steps, SetVector<Value> &rings) {
    for (const Step &step : steps) {
      if (step.ring)
        rings.insert(step.ring);
      addRings(step.inside, rings);
    }
  }

  /// Any two roles use what both use alike, and all three in an order that no two of them give the third one.
  LogicalResult verifyThree(RolesOp roles) {
    std::array<Trace, 3> traces;
    std::array<SetVector<Value>, 3> rings;
    for (auto [number, role] : llvm::enumerate(std::array{&roles.getLoad(), &roles.getMake(), &roles.getCompute()})) {
      traces[number] = trace(role->front());
      addRings(traces[number], rings[number]);
    }
    for (Value ring : rings[1].getArrayRef())
      if (RingOp op = ring.getDefiningOp<RingOp>(); !(op.getHanded() ? rings[2] : rings[0]).contains(ring))
        return op.emitOpError(op.getHanded() ? "is filled with tiles that nobody takes"
                                             : "is read by a role, and filled by none");
    for (Value ring : rings[2].getArrayRef())
      if (RingOp op = ring.getDefiningOp<RingOp>(); !(op.getHanded() ? rings[1] : rings[0]).contains(ring))
        return op.emitOpError("is read by a role, and filled by none");
    for (auto [one, other] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
      partner.clear();
      if (failed(compare(restricted(traces[one], rings[other]), restricted(traces[other], rings[one]), roles)))
        return failure();
    }
    return verifyOrder({&traces[0], &traces[1], &traces[2]}, roles);
  }

  /// Merges the roles' steps: one comes next that is the next one of all roles that take it. That two of them agree on
  /// what both take has been seen.
  static LogicalResult verifyOrder(std::array<const Trace *, 3> traces, Operation *around) {
    static const Trace none;
    std::array<size_t, 3> next = {0, 0, 0};
    auto isLeft = [&](size_t role) { return next[role] < traces[role]->size(); };
    auto ringsOf = [](const Step &step) {
      SetVector<Value> rings;
      addRings({step}, rings);
      return rings;
    };
    auto meet = [&](const Step &one, const Step &other) {
      SetVector<Value> rings = ringsOf(one);
      return llvm::any_of(ringsOf(other), [&](Value ring) { return rings.contains(ring); });
    };
    while (isLeft(0) || isLeft(1) || isLeft(2)) {
      bool goesOn = false;
      for (size_t role = 0; role < 3 && !goesOn; ++role) {
        if (!isLeft(role))
          continue;
        // Steps of the others that are the same one, each the next of its role; loops are the same where they use a
        // ring that both use.
        const Step &step = (*traces[role])[next[role]];
        std::array<bool, 3> takes = {false, false, false};
        takes[role] = true;
        bool isNext = true;
        for (size_t pass = 0; pass < 2;
             ++pass) // what one loop has in common with a second one, that may have with the third
          for (size_t other = 0; other < 3; ++other) {
            if (takes[other])
              continue;
            for (size_t at = next[other]; at < traces[other]->size() && !takes[other]; ++at) {
              const Step &candidate = (*traces[other])[at];
              bool isSameStep =
                  meet(step, candidate) || llvm::any_of(llvm::seq<size_t>(3), [&](size_t third) {
                    return takes[third] && isLeft(third) && meet((*traces[third])[next[third]], candidate);
                  });
              if (!isSameStep)
                continue;
              takes[other] = true;
              isNext &= at == next[other];
            }
          }
        if (!isNext)
          continue;
        std::array<const Trace *, 3> inside = {&none, &none, &none};
        Operation *loop = step.op;
        for (size_t other = 0; other < 3; ++other)
          if (takes[other])
            inside[other] = &(*traces[other])[next[other]++].inside;
        if (failed(verifyOrder(inside, loop)))
          return failure();
        goesOn = true;
      }
      if (!goesOn)
        return around->emitOpError(
            "has three roles that wait for each other: no order of the uses of rings is that of all of them");
    }
    return success();
  }

  LogicalResult verifyHanded(RolesOp roles) {
    WalkResult found = roles.getMake().walk([&](HandOp hand) {
      RingOp ring = hand.getRing().getDefiningOp<RingOp>();
      if (!ring || !ring.getHanded())
        return WalkResult(hand.emitOpError("signals a ring that others fill"));
      if (!isSlotOf(hand.getBuffer(), hand.getUse()))
        return WalkResult(hand.emitOpError("fills another slot than that of its use"));
      auto [known, isNew] = ringOf.try_emplace(hand.getBuffer().getDefiningOp<SlotOp>().getBuffer(), hand.getRing());
      return isNew || known->second == hand.getRing() ? WalkResult::advance()
                                                      : WalkResult(hand.emitOpError("fills a buffer of another ring"));
    });
    return failure(found.wasInterrupted());
  }

  /// Whether loops of the two roles run for the same numbers, which become partners then.
  bool haveSameTurns(Operation *load, Operation *compute) {
    auto left = dyn_cast<scf::ForOp>(load), right = dyn_cast<scf::ForOp>(compute);
    if (left && right) {
      partner[left.getInductionVar()] = right.getInductionVar();
      return isSame(left.getLowerBound(), right.getLowerBound()) &&
             isSame(left.getUpperBound(), right.getUpperBound()) && isSame(left.getStep(), right.getStep());
    }
    auto takes = dyn_cast<scf::WhileOp>(load), receives = dyn_cast<scf::WhileOp>(compute);
    std::optional<TakingLoop> from = takes ? takingLoop(takes) : std::nullopt,
                              to = receives ? takingLoop(receives) : std::nullopt;
    if (!from || !to || !isSame(from->first, to->first) || !isSame(from->count, to->count) ||
        !from->first.getDefiningOp<CtaIdOp>())
      return false;
    partner[from->number] = to->number;
    auto taken = from->next.getDefiningOp<TakeTileOp>();
    auto received = to->next.getDefiningOp<ReceiveOp>();
    return taken && taken.getCount() == from->count && received &&
           llvm::any_of(taken->getUsers(), [&](Operation *user) {
             auto send = dyn_cast<SendOp>(user);
             return send && send.getRing() == received.getRing() && send->getBlock() == taken->getBlock() &&
                    received->getBlock() == receives.getAfterBody();
           });
  }

  /// Whether values of the two roles are computed in the same way.
  bool isSame(Value load, Value compute) {
    if (load == compute || partner.lookup(load) == compute)
      return true;
    Operation *left = load.getDefiningOp(), *right = compute.getDefiningOp();
    if (!left || !right || !isRepeatable(left) ||
        cast<OpResult>(load).getResultNumber() != cast<OpResult>(compute).getResultNumber())
      return false;
    return OperationEquivalence::isEquivalentTo(
        left, right, [&](Value one, Value other) { return success(isSame(one, other)); },
        [&](Value one, Value other) { partner[one] = other; }, OperationEquivalence::IgnoreLocations);
  }

  // Turns

  /// Whether a warpgroup that has its turn before the block, or not, has it behind it.
  static FailureOr<bool> verifyTurns(Block &block, bool holds) {
    for (Operation &op : block) {
      if (isa<AwaitTurnOp, PassTurnOp>(op)) {
        if (isa<PassTurnOp>(op) != holds)
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
    if (!isSlotOf(load.getBuffer(), load.getUse()))
      return load.emitOpError("fills another slot than that of its use");
    ArrayRef<TensorMapAttr> maps = tensorMaps();
    if (load.getMap() >= maps.size())
      return load.emitOpError() << "uses tensor map " << load.getMap() << " of " << maps.size();
    if (!maps[load.getMap()].getWindow() != load.getTaps().empty())
      return load.emitOpError("is moved by taps where its map has no window, or the other way round");
    int64_t bytes = maps[load.getMap()].bytes(load.getView().getType().getElementBytes());
    if (load.getMulticast() && failed(verifyMulticast(load, maps[load.getMap()])))
      return failure();
    if (load.getMulticast()) // others bring the rest
      bytes *= getLaunch(kernel).cluster;
    int64_t begin = load.getDistance(), end = begin + bytes;
    Value all = load.getBuffer().getDefiningOp<SlotOp>().getBuffer();
    auto [known, isNew] = ringOf.try_emplace(all, load.getRing());
    if (!isNew && known->second != load.getRing())
      return load.emitOpError("fills a buffer of another ring");
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

  /// kgpu.ring says what is relied on: each iteration that shares a use awaits one that is not older than half of the
  /// slots allow.
  LogicalResult verifyShared(Block &block) {
    WalkResult found = block.walk([&](ShareOp share) {
      RingOp ring = share.getRing().getDefiningOp<RingOp>();
      int64_t slots = share.getRing().getType().getSlots();
      if (!ring || !ring.getShared())
        return WalkResult(share.emitOpError("signals a ring that the load role fills"));
      if (!isSlotOf(share.getBuffer(), share.getUse()))
        return WalkResult(share.emitOpError("fills another slot than that of its use"));
      auto [known, isNew] = ringOf.try_emplace(share.getBuffer().getDefiningOp<SlotOp>().getBuffer(), share.getRing());
      if (!isNew && known->second != share.getRing())
        return WalkResult(share.emitOpError("fills a buffer of another ring"));
      for (auto await : share->getBlock()->getOps<AwaitOp>()) {
        if (await.getRing() != share.getRing())
          continue;
        UseCount shared = useCountOf(share.getUse()), awaited = useCountOf(await.getUse());
        int64_t delay = shared.offset - awaited.offset;
        if (shared.base != awaited.base || delay < 0 || !share->isBeforeInBlock(await))
          return WalkResult(await.emitOpError("is no use that warpgroups have shared by then"));
        if (slots < 2 + 2 * delay)
          return WalkResult(share.emitOpError() << "overwrites what others may read: products " << delay
                                                << " uses later need " << 2 + 2 * delay << " slots");
        return WalkResult::advance();
      }
      return WalkResult(share.emitOpError("never awaits what others share"));
    });
    return failure(found.wasInterrupted());
  }

  // Reads

  /// `around` are uses that are awaited and not yet released around the block.
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
          if (llvm::is_contained({Value(product.getLhs()), Value(product.getRhs())}, clear.getBuffer()))
            return clear.emitOpError("changes a slot that a product may still read");
      } else if (auto wait = dyn_cast<WgmmaWaitOp>(op)) {
        size_t done = running.size() - std::min<size_t>(running.size(), wait.getPending());
        running.erase(running.begin(), running.begin() + done);
      } else if (auto settle = dyn_cast<SettleOp>(op)) {
        if (llvm::none_of(open, [&](AwaitOp one) {
              return one.getRing() == settle.getRing() && one.getUse() == settle.getUse();
            }))
          return settle.emitOpError("names a use that was not awaited before, or is released");
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
    llvm::erase_if(open, [](AwaitOp await) { return isShared(await.getRing()); });
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
  /// Whether a warpgroup reads, row by row, what it shared itself before.
  bool isOwn(WgmmaOp product, Value operand) {
    if (operand != product.getLhs() || operand.getDefiningOp<TransposeBufferOp>())
      return false;
    return llvm::any_of(product->getBlock()->getOps<ShareOp>(), [&](ShareOp share) {
      return share->isBeforeInBlock(product) && isOf(operand, share.getRing(), share.getUse());
    });
  }
  bool reads(WgmmaOp product, ReleaseOp release) {
    return isOf(product.getLhs(), release.getRing(), release.getUse()) ||
           isOf(product.getRhs(), release.getRing(), release.getUse());
  }

  tile::KernelOp kernel;
  SmallVector<TensorMapAttr> maps;
  DenseSet<Value> differing;      ///< between CTAs of a cluster
  DenseMap<Value, Value> partner; ///< induction variables: from the role that loads to the other one
  DenseMap<Value, Value> ringOf;  ///< of the buffers that copies fill
};

struct VerifySchedule final : impl::KgpuVerifyScheduleBase<VerifySchedule> {
  void runOnOperation() override {
    if (failed(Verifier(getOperation()).run()))
      signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
} // namespace kpkg::kgpu
