// Reductions across warps: each warp reduces its part, the parts are exchanged through shared memory, every warp reduces them again.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %s = tile.reduce sum %v axis 1 : tensor<1x1024xf32, #row> -> tensor<1x1xf32, #all>
// After:  %p = kgpu.partial_reduce sum %v axis 1 : tensor<1x1024xf32, #row> -> tensor<1x4xf32, #part>
//         %m = kgpu.alloc : !kgpu.smem<1x4xf32>
//         kgpu.local_store %p, %m
//         %q = kgpu.local_load %m : !kgpu.smem<1x4xf32> -> tensor<1x4xf32, #gather>
//         %s = tile.reduce sum %q axis 1 : tensor<1x4xf32, #gather> -> tensor<1x1xf32, #all>
//
// On entry: every tile has a layout. On exit: the axis of every tile.reduce and tile.combine lies within a warp. Where the parts lie in
// several CTAs of a cluster they are sent to all of them. Barriers come later.
#include "dialect/kgpu/Passes.h"
#include "dialect/layout/Algebra.h"

using namespace mlir;

namespace kpkg::kgpu {

#define GEN_PASS_DEF_KGPUEXPANDREDUCTIONS
#include "dialect/kgpu/Passes.h.inc"

namespace {

using layout::Layout;

/// How the parts of one reduction travel.
struct Exchange {
  Layout part, gather, result;
  bool acrossCtas = false;
};

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

/// A buffer that has the partial results of all warps, once there was a barrier.
Value storeParts(OpBuilder &builder, Location loc, Value part, const Exchange &plan) {
  auto type = cast<RankedTensorType>(part.getType());
  Value buffer = AllocOp::create(builder, loc, SharedType::get(type.getShape(), type.getElementType()), IntegerAttr());
  if (plan.acrossCtas)
    RemoteStoreOp::create(builder, loc, part, buffer);
  else
    LocalStoreOp::create(builder, loc, part, buffer);
  return buffer;
}

/// The partial results as every warp sees them.
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

/// `value` in the type that the users of the op expect.
Value converted(OpBuilder &builder, Location loc, Value value, Type type) {
  return value.getType() == type ? value : CvtLayoutOp::create(builder, loc, type, value).getResult();
}

/// Reductions that stand side by side: all parts are stored before the first is loaded.
LogicalResult expand(ArrayRef<tile::ReduceOp> group) {
  OpBuilder builder(group.front());
  SmallVector<Exchange, 0> plans;
  SmallVector<Value> buffers;
  for (tile::ReduceOp op : group) {
    const Layout &layout = layoutOf(op.getValue());
    FailureOr<Exchange> plan = planExchange(op, layout, op.getAxis());
    if (failed(plan))
      return failure();
    Type type = partType(op.getValue(), *plan, op.getAxis(), partialExtent(layout, op.getAxis()));
    Value part = PartialReduceOp::create(builder, op.getLoc(), type, op.getKind(), op.getValue(), op.getAxis());
    buffers.push_back(storeParts(builder, op.getLoc(), part, *plan));
    plans.push_back(*plan);
  }
  for (size_t i = 0; i < group.size(); ++i) {
    tile::ReduceOp op = group[i];
    const Exchange &plan = plans[i];
    Location loc = op.getLoc();
    Value gathered = loadParts(builder, loc, buffers[i], plan);
    Value whole = tile::ReduceOp::create(builder, loc, withLayout(op.getType(), plan.result), op.getKind(), gathered, op.getAxis());
    op.replaceAllUsesWith(converted(builder, loc, whole, op.getType()));
  }
  for (tile::ReduceOp op : group)
    op.erase();
  return success();
}

/// The body of `from` with a terminator of the kind `Yield`.
template <typename Yield> void copyBody(Region &from, Region &to, OpBuilder &builder) {
  IRMapping mapping;
  from.cloneInto(&to, mapping);
  Operation *end = to.front().getTerminator();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(end);
  Yield::create(builder, end->getLoc(), end->getOperands());
  end->erase();
}

LogicalResult expand(tile::CombineOp op) {
  const Layout &layout = layoutOf(op.getInputs().front());
  int64_t axis = op.getAxis();
  FailureOr<Exchange> plan = planExchange(op, layout, axis);
  if (failed(plan))
    return failure();
  OpBuilder builder(op);
  Location loc = op.getLoc();
  SmallVector<Type> types;
  for (Value input : op.getInputs())
    types.push_back(partType(input, *plan, axis, partialExtent(layout, axis)));
  auto part = PartialCombineOp::create(builder, loc, types, op.getInputs(), op.getInits(), axis);
  copyBody<YieldOp>(op.getBody(), part.getBody(), builder);
  SmallVector<Value> buffers, gathered;
  for (Value output : part.getOutputs())
    buffers.push_back(storeParts(builder, loc, output, *plan));
  for (Value buffer : buffers)
    gathered.push_back(loadParts(builder, loc, buffer, *plan));
  SmallVector<Type> results;
  for (Type type : op.getResultTypes())
    results.push_back(withLayout(type, plan->result));
  auto whole = tile::CombineOp::create(builder, loc, gathered, op.getInits(), axis);
  whole.getBody().getBlocks().clear();
  copyBody<tile::YieldOp>(op.getBody(), whole.getBody(), builder);
  for (auto [result, type, expected] : llvm::zip(whole.getOutputs(), results, op.getOutputs())) {
    result.setType(type);
    expected.replaceAllUsesWith(converted(builder, loc, result, expected.getType()));
  }
  op.erase();
  return success();
}

struct ExpandReductions final : impl::KgpuExpandReductionsBase<ExpandReductions> {
  void runOnOperation() override {
    SmallVector<Operation *> wide;
    getOperation().walk([&](Operation *op) {
      if (auto reduce = dyn_cast<tile::ReduceOp>(op); reduce && !isWithinWarp(layoutOf(reduce.getValue()), reduce.getAxis()))
        wide.push_back(op);
      if (auto combine = dyn_cast<tile::CombineOp>(op); combine && !isWithinWarp(layoutOf(combine.getInputs().front()), combine.getAxis()))
        wide.push_back(op);
    });
    for (size_t i = 0; i < wide.size();) {
      if (auto combine = dyn_cast<tile::CombineOp>(wide[i])) {
        if (failed(expand(combine)))
          return signalPassFailure();
        ++i;
        continue;
      }
      SmallVector<tile::ReduceOp> group = {cast<tile::ReduceOp>(wide[i])};
      for (++i; i < wide.size() && wide[i]->getPrevNode() == group.back() && isa<tile::ReduceOp>(wide[i]); ++i) {
        auto next = cast<tile::ReduceOp>(wide[i]);
        if (llvm::any_of(group, [&](tile::ReduceOp op) { return next.getValue() == op.getResult(); }))
          break;
        group.push_back(next);
      }
      if (failed(expand(group)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace kpkg::kgpu
