// Checks that the roles of a kernel use its rings in one order; in any other order two roles deadlock.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/verify/RoleOrder.h"

#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/ir/Repeatable.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
/// A use of a ring, or a loop around uses, in program order.
struct Step {
  Operation *op = nullptr;
  Value ring;               ///< for a use
  std::vector<Step> inside; ///< for a loop
};
using Trace = std::vector<Step>;

class RoleOrder {
public:
  LogicalResult verify(RolesOp roles) {
    if (!roles.getProducers().empty())
      return verifyThree(roles);
    return compare(trace(roles.getProducerWarp().front()), trace(roles.getConsumers().front()), roles);
  }

private:
  static Trace trace(Block &block) {
    Trace steps;
    for (Operation &op : block) {
      if (Value ring = ringOfUse(&op); ring && !isa<PublishAllOp>(op)) {
        steps.push_back({&op, ring, {}});
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

  // Kernels with three roles

  /// Returns the steps of a role that use these rings.
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

  /// Checks that any two roles agree on the rings that both use, and that one order of uses fits all three roles.
  LogicalResult verifyThree(RolesOp roles) {
    std::array<Trace, 3> traces;
    std::array<SetVector<Value>, 3> rings;
    for (auto [number, role] :
         llvm::enumerate(std::array{&roles.getProducerWarp(), &roles.getProducers(), &roles.getConsumers()})) {
      traces[number] = trace(role->front());
      addRings(traces[number], rings[number]);
    }
    for (auto [user, publishedPartner] : {std::pair(1, 2), std::pair(2, 1)})
      for (Value ring : rings[user].getArrayRef()) {
        RingOp op = ring.getDefiningOp<RingOp>();
        bool isPublished = op.getKind() == RingKind::Published;
        if (!rings[isPublished ? publishedPartner : 0].contains(ring))
          return op.emitOpError(isPublished && user == 1 ? "is filled with tiles that nobody takes"
                                                         : "is read by a role, and filled by none");
      }
    for (auto [one, other] : {std::pair(0, 1), std::pair(0, 2), std::pair(1, 2)}) {
      partner.clear();
      if (failed(compare(restricted(traces[one], rings[other]), restricted(traces[other], rings[one]), roles)))
        return failure();
    }
    return verifyOrder({&traces[0], &traces[1], &traces[2]}, roles);
  }

  /// Merges the roles' steps: a step comes next if it is the next one of every role that takes it. The caller has
  /// checked that any two roles agree on the rings that both use.
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
        // Finds the same step in the other roles, where it must be next. Loops are the same step if they use a common
        // ring.
        const Step &step = (*traces[role])[next[role]];
        std::array<bool, 3> takes = {false, false, false};
        takes[role] = true;
        bool isNext = true;
        for (size_t pass = 0; pass < 2;
             ++pass) // a second pass finds loops that share a ring only with a loop of the first pass
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

  /// Returns whether loops of two roles run the same iterations, and makes their induction variables partners.
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
    auto taken = from->next.getDefiningOp<NextTileOp>();
    auto received = to->next.getDefiningOp<ConsumeIndexOp>();
    return taken && taken.getCount() == from->count && received &&
           llvm::any_of(taken->getUsers(), [&](Operation *user) {
             auto send = dyn_cast<PublishIndexOp>(user);
             return send && send.getRing() == received.getRing() && send->getBlock() == taken->getBlock() &&
                    received->getBlock() == receives.getAfterBody();
           });
  }

  /// Returns whether values of two roles are computed in the same way.
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

  DenseMap<Value, Value> partner; ///< values of the first role, mostly induction variables, to those of the second
};
} // namespace

LogicalResult verifyRoleOrder(RolesOp roles) { return RoleOrder().verify(roles); }

} // namespace kpkg::kgpu
