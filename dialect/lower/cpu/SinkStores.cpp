// Sinks stores behind a branch on a scalar into the arms of the branch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before:
//   %r = scf.if %is -> tensor<8x8xf32> { %m = arith.maximumf %s, %zero; scf.yield %m } else { scf.yield %s }
//   tile.store %r, %d[%i, %j]
// After:
//   scf.if %is { %m = arith.maximumf %s, %zero; tile.store %m, %d[%i, %j] } else { tile.store %s, %d[%i, %j] }
//
// Each arm becomes one nest that ends where the view ends, and no element tests the condition. A select on a scalar
// counts as a branch if one of its sides costs more than a few instructions.
#include "dialect/lower/cpu/SinkStores.h"
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kpkg::lower::cpu {

/// Duplicating a nest for each arm is worth its code size up to this many ops.
static constexpr size_t mostOps = 64;

static bool isTile(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getNumElements() > 1;
}

/// Returns whether each element of the result depends only on elements of the operands, without side effects.
static bool isPureTileOp(Operation *op) {
  return op->getNumResults() == 1 && isa<RankedTensorType>(op->getResult(0).getType()) &&
         (isElementwise(op) ||
          isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp, tile::BroadcastOp, tile::ReshapeOp, tile::PermuteOp>(op));
}

static bool isDear(Operation *op) {
  return isa<arith::DivFOp>(op) || (isa<math::MathDialect>(op->getDialect()) && !isa<math::FmaOp, math::AbsFOp>(op));
}

namespace {

class Sinker {
public:
  explicit Sinker(tile::KernelOp kernel) {
    kernel.walk([&](Operation *op) {
      if (isa<tile::StoreOp, tile::ScatterOp, tile::AtomicOp>(op))
        written.insert(tile::argumentOf(op->getOperand(1)));
    });
  }

  void visit(Block &block);

private:
  llvm::DenseSet<Value> written;

  struct Slice {
    llvm::SetVector<Operation *> ops; ///< The users of the tiles, in order, the stores last.
    SmallVector<Operation *> inputs;  ///< Other operands of the slice defined after the branch, in order.
  };
  std::optional<Slice> sliceOf(Operation *op, ValueRange tiles);
  bool isMovable(Operation *op);
  scf::IfOp sink(scf::IfOp op, const Slice &slice);
  bool splitsWork(arith::SelectOp op);
  scf::IfOp branchOn(arith::SelectOp op);
  static void pullIn(scf::IfOp op);
};

/// Returns whether the op may be placed anywhere after its operands.
bool Sinker::isMovable(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op))
    return !written.contains(tile::argumentOf(load.getView()));
  if (auto gather = dyn_cast<tile::GatherOp>(op))
    return !written.contains(tile::argumentOf(gather.getView()));
  return op->getNumRegions() == 0 && isMemoryEffectFree(op);
}

/// Returns the slice of users of `tiles`, which are results of `op`. Returns nothing unless it ends in stores that can
/// move to `op`.
std::optional<Sinker::Slice> Sinker::sliceOf(Operation *op, ValueRange tiles) {
  Block *block = op->getBlock();
  llvm::SmallDenseSet<Operation *> members;
  SmallVector<Value> work(tiles);
  unsigned stores = 0;
  while (!work.empty()) {
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (user->getBlock() != block || !(isPureTileOp(user) || isa<tile::StoreOp>(user)))
        return std::nullopt;
      if (!members.insert(user).second)
        continue;
      if (isa<tile::StoreOp>(user))
        ++stores;
      else
        work.push_back(user->getResult(0));
    }
  }
  if (!stores || members.size() > mostOps)
    return std::nullopt;
  Slice slice;
  for (Operation *next = op->getNextNode(); slice.ops.size() < members.size(); next = next->getNextNode()) {
    if (members.contains(next))
      slice.ops.insert(next);
    else if (!isMovable(next))
      return std::nullopt;
  }
  // Other operands of the slice must be placed before the branch.
  llvm::SmallDenseSet<Operation *> needed;
  SmallVector<Operation *> pending(slice.ops.begin(), slice.ops.end());
  while (!pending.empty())
    for (Value operand : pending.pop_back_val()->getOperands()) {
      Operation *source = operand.getDefiningOp();
      if (!source || source->getBlock() != block || members.contains(source) || source->isBeforeInBlock(op))
        continue;
      if (source == op) {
        if (isTile(operand))
          continue;
        return std::nullopt; // A scalar result of the branch, which is rare.
      }
      if (needed.insert(source).second)
        pending.push_back(source);
    }
  for (Operation *next = op->getNextNode(); slice.inputs.size() < needed.size(); next = next->getNextNode())
    if (needed.contains(next))
      slice.inputs.push_back(next);
  return slice;
}

/// Clones the slice into both arms. Results that are no tiles are kept.
scf::IfOp Sinker::sink(scf::IfOp op, const Slice &slice) {
  for (Operation *input : slice.inputs)
    input->moveBefore(op);
  SmallVector<unsigned> kept;
  SmallVector<Type> types;
  for (OpResult result : op.getResults())
    if (!isTile(result)) {
      kept.push_back(result.getResultNumber());
      types.push_back(result.getType());
    }
  OpBuilder builder(op);
  auto made = scf::IfOp::create(builder, op.getLoc(), types, op.getCondition(), /*withElseRegion=*/true);
  for (auto [to, from] :
       {std::pair(&made.getThenRegion(), &op.getThenRegion()), std::pair(&made.getElseRegion(), &op.getElseRegion())}) {
    to->takeBody(*from);
    Operation *yield = to->front().getTerminator();
    IRMapping arm;
    for (OpResult result : op.getResults())
      arm.map(result, yield->getOperand(result.getResultNumber()));
    builder.setInsertionPoint(yield);
    for (Operation *one : slice.ops)
      builder.clone(*one, arm);
    SmallVector<Value> values;
    for (unsigned number : kept)
      values.push_back(yield->getOperand(number));
    yield->setOperands(values);
  }
  for (Operation *one : llvm::reverse(slice.ops.getArrayRef()))
    one->erase();
  for (auto [number, result] : llvm::zip(kept, made.getResults()))
    op.getResult(number).replaceAllUsesWith(result);
  op.erase();
  return made;
}

/// Returns whether only one side of a select on a scalar needs an op that costs more than a few instructions. Returns
/// false when a side has too many ops to duplicate the nest.
bool Sinker::splitsWork(arith::SelectOp op) {
  if (!op.getCondition().getType().isInteger(1) || !isTile(op.getResult()))
    return false;
  auto coneOf = [&](Value root, llvm::SmallDenseSet<Operation *> &cone) {
    SmallVector<Value> work = {root};
    while (!work.empty()) {
      Operation *source = work.pop_back_val().getDefiningOp();
      if (source && source->getBlock() == op->getBlock() && isPureTileOp(source) && cone.insert(source).second)
        llvm::append_range(work, source->getOperands());
    }
  };
  llvm::SmallDenseSet<Operation *> onTrue, onFalse;
  coneOf(op.getTrueValue(), onTrue);
  coneOf(op.getFalseValue(), onFalse);
  if (onTrue.size() > mostOps || onFalse.size() > mostOps)
    return false;
  return llvm::any_of(onTrue, [&](Operation *one) { return isDear(one) && !onFalse.contains(one); }) ||
         llvm::any_of(onFalse, [&](Operation *one) { return isDear(one) && !onTrue.contains(one); });
}

scf::IfOp Sinker::branchOn(arith::SelectOp op) {
  OpBuilder builder(op);
  auto branch = scf::IfOp::create(
      builder, op.getLoc(), op.getCondition(),
      [&](OpBuilder &arm, Location loc) { scf::YieldOp::create(arm, loc, op.getTrueValue()); },
      [&](OpBuilder &arm, Location loc) { scf::YieldOp::create(arm, loc, op.getFalseValue()); });
  op.getResult().replaceAllUsesWith(branch.getResult(0));
  op.erase();
  return branch;
}

/// Moves ops that only one arm needs into it. Selects before this one are then considered together with the store that
/// they lead to.
void Sinker::pullIn(scf::IfOp op) {
  for (Operation *one = op->getPrevNode(), *before = nullptr; one; one = before) {
    before = one->getPrevNode();
    if (!isPureTileOp(one) || one->use_empty())
      continue;
    for (Region *arm : {&op.getThenRegion(), &op.getElseRegion()})
      if (llvm::all_of(one->getUsers(), [&](Operation *user) { return arm->isAncestor(user->getParentRegion()); }))
        one->moveBefore(&arm->front(), arm->front().begin());
  }
}

void Sinker::visit(Block &block) {
  for (Operation *op = block.empty() ? nullptr : &block.back(); op;) {
    Operation *before = op->getPrevNode();
    if (auto branch = dyn_cast<scf::IfOp>(op); branch && llvm::any_of(branch.getResults(), isTile)) {
      auto tiles = llvm::make_filter_range(branch.getResults(), isTile);
      if (std::optional<Slice> slice = sliceOf(op, SmallVector<Value>(tiles.begin(), tiles.end())))
        op = sink(branch, *slice);
    } else if (auto select = dyn_cast<arith::SelectOp>(op); select && splitsWork(select)) {
      if (std::optional<Slice> slice = sliceOf(op, select.getResult())) {
        scf::IfOp made = branchOn(select);
        made = sink(made, *slice);
        pullIn(made);
        op = made;
        before = op->getPrevNode();
      }
    }
    for (Region &region : op->getRegions())
      for (Block &inner : region)
        visit(inner);
    op = before;
  }
}

} // namespace

void sinkStores(tile::KernelOp kernel) {
  if (kernel.getBody().hasOneBlock())
    Sinker(kernel).visit(kernel.getBody().front());
}

void hoistScalars(tile::KernelOp kernel) {
  kernel.walk([](Block *block) {
    Operation *last = nullptr; // The last op that was moved.
    llvm::SmallDenseSet<Operation *> moved;
    for (Operation &op : llvm::make_early_inc_range(*block)) {
      bool isScalar = op.getNumResults() == 1 && !isa<TensorType>(op.getResult(0).getType()) && !op.getNumRegions() &&
                      isMemoryEffectFree(&op);
      bool isFree = llvm::all_of(op.getOperands(), [&](Value operand) {
        Operation *source = operand.getDefiningOp();
        return !source || source->getBlock() != block || moved.contains(source);
      });
      if (!isScalar || !isFree)
        continue;
      if (last)
        op.moveAfter(last);
      else
        op.moveBefore(block, block->begin());
      last = &op;
      moved.insert(last);
    }
  });
}

} // namespace kpkg::lower::cpu
