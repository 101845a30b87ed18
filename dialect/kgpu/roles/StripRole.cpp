// Erases the code of a role that leads to none of its effects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/RingUses.h"
#include "dialect/kgpu/roles/RoleCode.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
bool isRingUse(Operation *op) { return isa<AwaitOp, ReleaseOp, ClearOutsideOp>(op); }

/// The values and ops that some effects need.
class Needed {
public:
  bool has(Value value) const { return values.contains(value); }
  bool has(Operation *op) const {
    return kept.contains(op) || llvm::any_of(op->getResults(), [&](Value result) { return has(result); });
  }

  /// Keeps an op with an effect, the values it reads, and the ops that decide whether it runs.
  void keep(Operation *op) {
    kept.insert(op);
    for (Value operand : op->getOperands())
      need(operand);
    for (Operation *around = op->getParentOp(); !isa<RolesOp>(around); around = around->getParentOp()) {
      kept.insert(around);
      if (auto loop = dyn_cast<scf::ForOp>(around)) {
        for (Value bound : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep()})
          need(bound);
      } else if (auto choice = dyn_cast<scf::IfOp>(around)) {
        need(choice.getCondition());
      }
    }
  }

private:
  void need(Value value) {
    if (!values.insert(value).second)
      return;
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
          loop && argument != loop.getInductionVar())
        needCarried(loop, loop.getTiedLoopResult(argument));
      return;
    }
    Operation *op = value.getDefiningOp();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return needCarried(loop, cast<OpResult>(value));
    for (Value operand : op->getOperands())
      need(operand);
    op->walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        need(operand);
    });
  }

  void needCarried(scf::ForOp loop, OpResult result) {
    BlockArgument argument = loop.getTiedLoopRegionIterArg(result);
    for (Value value : {Value(result), Value(argument)})
      values.insert(value);
    for (Value value : {loop.getLowerBound(), loop.getUpperBound(), loop.getStep(),
                        loop.getTiedLoopInit(argument)->get(), loop.getTiedLoopYieldedValue(argument)->get()})
      need(value);
  }

  DenseSet<Value> values;
  DenseSet<Operation *> kept;
};
} // namespace

void stripRole(IRRewriter &rewriter, Region &role, const DenseMap<Value, Value> &rings, DenseSet<Value> &cleared,
               llvm::function_ref<bool(Operation *)> isKept) {
  Needed needed;
  role.walk([&](Operation *op) {
    if (isKept(op))
      needed.keep(op);
  });
  DenseSet<Value> read;
  role.walk([&](Operation *op) {
    if (isa<WgmmaOp, LocalLoadOp>(op) && needed.has(op))
      for (Value operand : op->getOperands())
        if (isa<SharedType>(operand.getType()))
          read.insert(rings.lookup(rootBuffer(operand)));
  });
  role.walk([&](Operation *op) {
    if (!isRingUse(op))
      return;
    auto clear = dyn_cast<ClearOutsideOp>(op);
    Value ring = clear ? rings.lookup(rootBuffer(clear.getBuffer())) : op->getOperand(0);
    if (read.contains(ring) && !(clear && cleared.contains(ring)))
      needed.keep(op);
  });
  cleared.insert(read.begin(), read.end());
  role.walk([&](scf::ForOp loop) {
    for (auto [argument, yielded] : llvm::zip(loop.getRegionIterArgs(), *loop.getYieldedValuesMutable()))
      if (!needed.has(argument))
        yielded.set(argument);
  });
  SmallVector<Operation *> ops;
  role.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops)) // users of an op are erased before it
    if (!op->hasTrait<OpTrait::IsTerminator>() && !needed.has(op) && op->use_empty())
      rewriter.eraseOp(op);
}

} // namespace kpkg::kgpu
