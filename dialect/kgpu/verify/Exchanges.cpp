// Checks that the CTAs of a cluster agree on their exchanges.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two slots are enough, and so are two exchanges in an iteration. A warp sends its part of use n + 2 after it has
// received all parts of use n + 1. Every warp of the cluster sent its part of those after it had read use n. For two
// exchanges in an iteration, use n + 1 is that of the other exchange, and use n + 2 that of the same one.
#include "dialect/kgpu/verify/Exchanges.h"
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/ir/Walks.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
/// Returns whether `use` is 0 in the first iteration of the loop, and grows by one per iteration.
bool countsIterations(Value use, scf::ForOp loop) {
  auto argument = dyn_cast<BlockArgument>(use);
  if (!argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar())
    return false;
  unsigned number = argument.getArgNumber() - loop.getNumInductionVars();
  auto next = loop.getYieldedValues()[number].getDefiningOp<arith::AddIOp>();
  return matchPattern(loop.getInitArgs()[number], m_Zero()) && next && next.getLhs() == use &&
         matchPattern(next.getRhs(), m_One());
}

/// Returns whether a bound may differ between CTAs of the cluster.
bool dependsOnCta(Value bound) {
  Operation *op = bound.getDefiningOp();
  if (!op)
    return false;
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitUsesFromAbove = false; // a branch that returns the bound may read the rank
  if (failed(getBackwardSlice(op, &slice, options)))
    return true;
  return llvm::any_of(slice, [](Operation *part) { return containsOp<CtaIdOp, ClusterRankOp>(part); });
}

class Verifier {
public:
  explicit Verifier(tile::KernelOp kernel) : kernel(kernel) {}

  LogicalResult verify(ExchangeOp op) const {
    auto loop = dyn_cast<scf::ForOp>(op->getParentOp());
    Operation *outermost = loop ? loop.getOperation() : op.getOperation();
    if (outermost->getParentOp() != kernel)
      return op.emitOpError("stands where not all threads of the cluster may come");
    if (loop &&
        (dependsOnCta(loop.getLowerBound()) || dependsOnCta(loop.getUpperBound()) || dependsOnCta(loop.getStep())))
      return op.emitOpError("is in a loop of which CTAs of a cluster may run other iterations");
    if (loop ? !countsIterations(op.getUse(), loop) : !matchPattern(op.getUse(), m_Zero()))
      return op.emitOpError("does not count its uses 0, 1, 2, ...");
    auto barriers = op.getBarriers().getDefiningOp<AllocOp>();
    if (!barriers)
      return op.emitOpError("has no barriers of its own");
    int64_t slots = op.getBarriers().getType().getShape()[0];
    if (failed(verifyBarriers(op, barriers, *outermost)) || failed(verifyBuffers(op, slots)))
      return failure();
    bool hasOther =
        loop && llvm::any_of(loop.getBody()->getOps<ExchangeOp>(), [&](ExchangeOp other) { return other != op; });
    if (loop && slots < 2 && !hasOther)
      return op.emitOpError("fills its only slot again while others may read it");
    return success();
  }

private:
  LogicalResult verifyBarriers(ExchangeOp op, AllocOp barriers, Operation &outermost) const {
    ExchangeInitOp init;
    for (Operation *user : barriers->getUsers()) {
      if (auto one = dyn_cast<ExchangeInitOp>(user); one && !init)
        init = one;
      else if (user != op)
        return op.emitOpError("has no barriers of its own");
    }
    if (!init || init->getParentOp() != kernel || !init->isBeforeInBlock(&outermost))
      return op.emitOpError("has barriers that nobody has prepared");
    // Before kgpu-insert-barriers, buffers have no offsets.
    if (!barriers.getOffset())
      return success();
    for (Operation *next = init->getNextNode(); next != &outermost; next = next->getNextNode())
      if (isa<ClusterBarrierOp>(next))
        return success();
    return op.emitOpError("may come before other CTAs have prepared their barriers");
  }

  LogicalResult verifyBuffers(ExchangeOp op, int64_t slots) const {
    for (Value buffer : op.getBuffers()) {
      auto slot = buffer.getDefiningOp<SlotOp>();
      auto all = slot ? slot.getBuffer().getDefiningOp<AllocOp>() : AllocOp();
      if (!all || slot.getBuffer().getType().getShape()[0] != slots || !isSlotOf(buffer, op.getUse()))
        return op.emitOpError() << "fills a buffer that is not slot number `use` of " << slots;
      bool isOwn = llvm::all_of(all->getUsers(), [&](Operation *user) { return user == slot; }) &&
                   llvm::all_of(slot->getUsers(), [&](Operation *user) {
                     return user == op ||
                            (isa<LocalLoadOp>(user) && user->getBlock() == op->getBlock() && op->isBeforeInBlock(user));
                   });
      if (!isOwn)
        return op.emitOpError("has a buffer that is not read behind it, and nothing else");
    }
    return success();
  }

  tile::KernelOp kernel;
};
} // namespace

LogicalResult verifyExchanges(tile::KernelOp kernel) {
  Verifier verifier(kernel);
  return forEachOp<ExchangeOp>(kernel, [&](ExchangeOp op) { return verifier.verify(op); });
}
} // namespace kpkg::kgpu
