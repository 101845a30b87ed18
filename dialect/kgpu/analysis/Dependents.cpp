// Finds the values that depend on some other values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/Dependents.h"
#include "dialect/kgpu/ir/KgpuDialect.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
class Closure {
public:
  explicit Closure(ArrayRef<Value> sources) : known(sources.begin(), sources.end()) {}

  DenseSet<Value> of(Operation *root) {
    size_t before = 0;
    do { // loops carry values back to their beginning
      before = known.size();
      root->walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (op != root)
          visit(op);
      });
    } while (known.size() != before);
    return known;
  }

private:
  bool has(Value value) const { return known.contains(value); }

  void visit(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return visitLoop(loop);
    bool depends = readsWritten(op) || llvm::any_of(op->getOperands(), [&](Value operand) { return has(operand); });
    for (Region &region : op->getRegions()) // the op may return values that its region computes
      for (Block &block : region)
        for (Operation &inner : block)
          depends |= op->getNumResults() != 0 &&
                     llvm::any_of(inner.getOperands(), [&](Value operand) { return has(operand); });
    if (!depends)
      return;
    known.insert(op->result_begin(), op->result_end());
    for (Region &region : op->getRegions())
      for (Block &block : region)
        known.insert(block.args_begin(), block.args_end());
  }

  static bool readsWritten(Operation *op) {
    if (!isa<tile::LoadOp, tile::GatherOp>(op))
      return false;
    return cast<tile::ViewType>(op->getOperand(0).getType()).getIsMut();
  }

  void visitLoop(scf::ForOp loop) {
    bool bounds = hasBoundIn(loop, known);
    if (bounds)
      known.insert(loop.getInductionVar());
    for (BlockArgument argument : loop.getRegionIterArgs())
      if (bounds || has(argument) || has(loop.getTiedLoopInit(argument)->get()) ||
          has(loop.getTiedLoopYieldedValue(argument)->get())) {
        known.insert(argument);
        known.insert(loop.getTiedLoopResult(argument));
      }
  }

  DenseSet<Value> known;
};
} // namespace

DenseSet<Value> dependents(Operation *root, ArrayRef<Value> sources) { return Closure(sources).of(root); }

DenseSet<Value> differingInCluster(tile::KernelOp kernel) {
  SmallVector<Value> ranks;
  kernel.walk([&](Operation *op) {
    if (isa<ClusterRankOp, CtaIdOp>(op))
      ranks.push_back(op->getResult(0));
  });
  return dependents(kernel, ranks);
}

bool hasBoundIn(scf::ForOp loop, const DenseSet<Value> &values) {
  return values.contains(loop.getLowerBound()) || values.contains(loop.getUpperBound()) ||
         values.contains(loop.getStep());
}
} // namespace kpkg::kgpu
