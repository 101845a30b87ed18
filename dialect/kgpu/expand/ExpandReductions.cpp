// Expands reductions across warps into partial ones and an exchange through shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %s = tile.reduce sum %v axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
// After:  %p = kgpu.partial_reduce sum %v axis 1 : tensor<1x1024xf32, #row> -> tensor<1x4xf32, #part>
//         %m = kgpu.alloc : !kgpu.smem<1x4xf32>
//         kgpu.local_store %p, %m
//         %q = kgpu.local_load %m : !kgpu.smem<1x4xf32> -> tensor<1x4xf32, #gather>
//         %s = tile.reduce sum %q axis 1 : tensor<1x4xf32, #gather> -> tensor<1x1xf32, #all>
//
// On entry: every tile has a layout.
// On exit: the axis of every tile.reduce and tile.combine lies within a warp. Barriers are inserted later.
//
// If several CTAs of a cluster hold parts, each sends its partial results to all of them. A CTA then waits for the
// partial results, not for the other CTAs:
//         %m = kgpu.alloc : !kgpu.smem<2x1x64xf32>;  %b = kgpu.alloc : !kgpu.smem<2xi64>;  kgpu.exchange_init %b
//         scf.for ... iter_args(%use = 0) {
//           %p = kgpu.partial_reduce sum %v axis 1 : ... -> tensor<1x64xf32, #part>
//           %slot = kgpu.slot %m[%use mod 2]
//           kgpu.exchange %p to %slot signals %b[%use]
//           %q = kgpu.local_load %slot
//           scf.yield %use + 1
//         }
// One slot is enough outside of a loop, and in a loop with several exchanges. A warp that sends its next part of one
// exchange has received all parts of another. Every warp sent those after it had read the previous parts.
//
// Deeper in the control flow, and where not all warps hold a part, partial results are sent by `kgpu.remote_store`.
// The cluster then waits at barriers.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/expand/SharedTiles.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "dialect/kgpu/ir/ConvertLayout.h"
#include "dialect/layout/Algebra.h"

using namespace mlir;

namespace kpkg::kgpu {

#define GEN_PASS_DEF_KGPUEXPANDREDUCTIONS
#include "dialect/kgpu/Passes.h.inc"

namespace {

using layout::Layout;

/// The layouts of the partial results of one reduction.
struct Exchange {
  Layout part, gather, result;
  bool acrossCtas = false;
};

/// The exchanges between CTAs of a cluster, and the counters of the loops that contain them.
class Exchanges {
public:
  explicit Exchanges(tile::KernelOp kernel) : kernel(kernel), launch(getLaunch(kernel)) {}

  /// Returns whether the partial results of `op` are sent by a kgpu.exchange of their own.
  bool takes(Operation *op, const Exchange &plan, unsigned axis) const {
    SmallVector<int64_t> shape(cast<RankedTensorType>(op->getResult(0).getType()).getShape());
    shape[axis] = plan.part.shape()[axis];
    bool isDirect = op->getParentOp() == kernel ||
                    (isa<scf::ForOp>(op->getParentOp()) && op->getParentOp()->getParentOp() == kernel);
    return plan.acrossCtas && isDirect && targetOf(kernel).hasBulkCopy && llvm::equal(plan.part.shape(), shape) &&
           llvm::all_of(op->getResultTypes(),
                        [&](Type type) { return canExchange(plan.part, getElementTypeOrSelf(type), launch); });
  }

  /// Counts the exchanges of each loop before any is created. Then makeCounters() adds a counter to the loop.
  void announce(Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp()))
      ++announced[loop];
  }
  void makeCounters() {
    for (auto [op, count] : announced) {
      auto loop = cast<scf::ForOp>(op);
      OpBuilder builder(loop);
      Value zero = arith::ConstantIntOp::create(builder, loop.getLoc(), 0, 32);
      scf::ForOp counted = carryAlso(
          loop, zero, [loc = loop.getLoc()](OpBuilder &builder, ArrayRef<BlockArgument> uses) -> SmallVector<Value> {
            return {arith::AddIOp::create(builder, loc, uses[0], arith::ConstantIntOp::create(builder, loc, 1, 32))};
          });
      loops[counted] = {counted.getRegionIterArgs().back(), count > 1 ? 1 : 2};
    }
  }

  /// Exchanges `parts`, and returns the buffers that receive the parts of all warps of the cluster.
  SmallVector<Value> make(OpBuilder &builder, Location loc, ValueRange parts) {
    Operation *around = builder.getInsertionBlock()->getParentOp();
    auto [use, slots] = isa<scf::ForOp>(around) ? loops.at(around) : std::pair<Value, int64_t>(Value(), 1);
    if (!use)
      use = arith::ConstantIntOp::create(builder, loc, 0, 32);
    auto start = OpBuilder::atBlockBegin(&kernel.getBody().front());
    Value barriers = AllocOp::create(start, loc, SharedType::get({slots}, builder.getI64Type()), IntegerAttr());
    ExchangeInitOp::create(start, loc, barriers);
    Value index = arith::ConstantIndexOp::create(builder, loc, 0);
    if (slots > 1) {
      Value rest = arith::RemUIOp::create(builder, loc, use, arith::ConstantIntOp::create(builder, loc, slots, 32));
      index = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), rest);
    }
    SmallVector<Value> buffers;
    for (Value part : parts) {
      auto type = cast<RankedTensorType>(part.getType());
      SharedType slot = SharedType::get(type.getShape(), type.getElementType());
      SmallVector<int64_t> shape(type.getShape());
      shape.insert(shape.begin(), slots);
      Value all = AllocOp::create(start, loc, SharedType::get(shape, type.getElementType()), IntegerAttr());
      buffers.push_back(SlotOp::create(builder, loc, slot, all, index));
    }
    ExchangeOp::create(builder, loc, parts, buffers, barriers, use);
    return buffers;
  }

private:
  tile::KernelOp kernel;
  Launch launch;
  llvm::MapVector<Operation *, int64_t> announced;
  DenseMap<Operation *, std::pair<Value, int64_t>> loops;
};

Exchange planExchange(SharePartsOp op) {
  const Layout &part = layoutOf(op.getParts()[0]), &gather = layoutOf(op.getOutputs()[0]);
  return {part, gather, llvm::cantFail(layout::slice(gather, op.getAxis())),
          part.bitsAlong(layout::Part::Block, op.getAxis()) != 0};
}

FailureOr<Exchange> planExchange(Operation *op, const Layout &layout, unsigned axis) {
  llvm::Expected<Layout> part = partialLayout(layout, axis);
  llvm::Expected<Layout> gather = gatherLayout(layout, axis);
  if (!part || !gather) {
    std::string reason = llvm::toString(!part ? part.takeError() : gather.takeError());
    if (part && gather)
      llvm::consumeError(gather.takeError());
    return op->emitOpError() << "cannot be reduced across warps: " << reason;
  }
  llvm::Expected<Layout> result = layout::slice(*gather, axis);
  if (!result)
    return op->emitOpError() << "cannot be reduced across warps: " << llvm::toString(result.takeError());
  return Exchange{*part, *gather, *result, layout.bitsAlong(layout::Part::Block, axis) != 0};
}

/// Loads the partial results of all warps into every warp.
Value loadParts(OpBuilder &builder, Location loc, Value buffer, const Exchange &plan) {
  auto type = cast<SharedType>(buffer.getType());
  auto tile = RankedTensorType::get(type.getShape(), type.getElementType());
  return LocalLoadOp::create(builder, loc, withLayout(tile, plan.gather), buffer);
}

RankedTensorType partType(Value input, const Exchange &plan, int64_t axis, int64_t extent) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = extent;
  return withLayout(RankedTensorType::get(shape, type.getElementType()), plan.part);
}

/// Returns buffers that hold the partial results of all warps after a barrier or an exchange.
SmallVector<Value> shareParts(OpBuilder &builder, Location loc, ValueRange parts, ArrayRef<Exchange> plans,
                              Exchanges *exchanges) {
  if (exchanges)
    return exchanges->make(builder, loc, parts);
  SmallVector<Value> buffers;
  for (auto [part, plan] : llvm::zip_equal(parts, plans))
    buffers.push_back(storedTile(builder, loc, part, plan.acrossCtas));
  return buffers;
}

/// Expands adjacent reductions together: all parts are shared before the first one is loaded. If `exchanges` is given,
/// it shares them.
void expand(MutableArrayRef<tile::ReduceOp> group, ArrayRef<Exchange> plans, Exchanges *exchanges) {
  OpBuilder builder(group.front());
  SmallVector<Value> parts;
  for (auto [op, plan] : llvm::zip_equal(group, plans)) {
    Type type = partType(op.getValue(), plan, op.getAxis(), partialExtent(layoutOf(op.getValue()), op.getAxis()));
    parts.push_back(PartialReduceOp::create(builder, op.getLoc(), type, op.getKind(), op.getValue(), op.getAxis()));
  }
  SmallVector<Value> buffers = shareParts(builder, group.front().getLoc(), parts, plans, exchanges);
  for (auto [op, plan, buffer] : llvm::zip_equal(group, plans, buffers)) {
    Location loc = op.getLoc();
    Value gathered = loadParts(builder, loc, buffer, plan);
    Value whole = tile::ReduceOp::create(builder, loc, withLayout(op.getType(), plan.result), op.getKind(), gathered,
                                         op.getAxis());
    op.replaceAllUsesWith(converted(builder, loc, whole, op.getType()));
  }
  for (tile::ReduceOp op : group)
    op.erase();
}

void expand(tile::CombineOp op, const Exchange &plan, Exchanges *exchanges) {
  const Layout &layout = layoutOf(op.getInputs().front());
  int64_t axis = op.getAxis();
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<Type> types;
  for (Value input : op.getInputs())
    types.push_back(partType(input, plan, axis, partialExtent(layout, axis)));
  auto part = PartialCombineOp::create(builder, loc, types, op.getInputs(), op.getInits(), axis);
  copyBody<YieldOp>(op.getBody(), part.getBody());
  SmallVector<Value> gathered;
  for (Value buffer :
       shareParts(builder, loc, part.getOutputs(), SmallVector<Exchange, 0>(types.size(), plan), exchanges))
    gathered.push_back(loadParts(builder, loc, buffer, plan));
  SmallVector<Type> results;
  for (Type type : op.getResultTypes())
    results.push_back(withLayout(type, plan.result));
  auto whole = tile::CombineOp::create(builder, loc, gathered, op.getInits(), axis);
  whole.getBody().getBlocks().clear();
  copyBody<tile::YieldOp>(op.getBody(), whole.getBody());
  for (auto [result, type, expected] : llvm::zip(whole.getOutputs(), results, op.getOutputs())) {
    result.setType(type);
    expected.replaceAllUsesWith(converted(builder, loc, result, expected.getType()));
  }
  op.erase();
}

void expand(SharePartsOp op, const Exchange &plan, Exchanges *exchanges) {
  OpBuilder builder(op);
  SmallVector<Value> buffers =
      shareParts(builder, op.getLoc(), op.getParts(), SmallVector<Exchange, 0>(op.getParts().size(), plan), exchanges);
  for (auto [buffer, output] : llvm::zip_equal(buffers, op.getOutputs()))
    output.replaceAllUsesWith(loadParts(builder, op.getLoc(), buffer, plan));
  op.erase();
}

/// Ops that are expanded together: a combination, shared partial results, or adjacent reductions.
struct Group {
  SmallVector<Operation *> ops;
  SmallVector<Exchange, 0> plans;
  bool isExchanged = false;
};

SmallVector<Group, 0> groupsOf(tile::KernelOp kernel) {
  SmallVector<Group, 0> groups;
  kernel.walk([&](Operation *op) {
    auto reduce = dyn_cast<tile::ReduceOp>(op);
    if (isa<SharePartsOp>(op))
      groups.push_back({{op}, {}});
    if (auto combine = dyn_cast<tile::CombineOp>(op)) {
      if (!isWithinWarp(layoutOf(combine.getInputs().front()), combine.getAxis()))
        groups.push_back({{op}, {}});
    } else if (reduce && !isWithinWarp(layoutOf(reduce.getValue()), reduce.getAxis())) {
      bool joins = !groups.empty() && op->getPrevNode() == groups.back().ops.back() &&
                   isa<tile::ReduceOp>(groups.back().ops.back()) &&
                   !llvm::is_contained(groups.back().ops, reduce.getValue().getDefiningOp());
      if (joins)
        groups.back().ops.push_back(op);
      else
        groups.push_back({{op}, {}});
    }
  });
  return groups;
}

struct ExpandReductions final : impl::KgpuExpandReductionsBase<ExpandReductions> {
  void runOnOperation() override {
    Exchanges exchanges(getOperation());
    SmallVector<Group, 0> groups = groupsOf(getOperation());
    for (Group &group : groups) {
      group.isExchanged = true;
      for (Operation *op : group.ops) {
        auto share = dyn_cast<SharePartsOp>(op);
        unsigned axis = share                      ? share.getAxis()
                        : isa<tile::CombineOp>(op) ? cast<tile::CombineOp>(op).getAxis()
                                                   : cast<tile::ReduceOp>(op).getAxis();
        FailureOr<Exchange> plan = share ? planExchange(share) : planExchange(op, layoutOf(op->getOperand(0)), axis);
        if (failed(plan))
          return signalPassFailure();
        group.plans.push_back(*plan);
        group.isExchanged = group.isExchanged && exchanges.takes(op, *plan, axis);
      }
      if (group.isExchanged)
        exchanges.announce(group.ops.front());
    }
    exchanges.makeCounters();
    for (Group &group : groups) {
      Exchanges *way = group.isExchanged ? &exchanges : nullptr;
      if (auto share = dyn_cast<SharePartsOp>(group.ops.front())) {
        expand(share, group.plans.front(), way);
        continue;
      }
      if (auto combine = dyn_cast<tile::CombineOp>(group.ops.front())) {
        expand(combine, group.plans.front(), way);
        continue;
      }
      auto reductions = llvm::map_to_vector(group.ops, llvm::CastTo<tile::ReduceOp>);
      expand(reductions, group.plans, way);
    }
  }
};

} // namespace
} // namespace kpkg::kgpu
