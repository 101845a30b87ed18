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

/// The tiles of partial results as every warp sees them. All are stored before any is loaded: one barrier is enough.
SmallVector<Value> exchange(OpBuilder &builder, Location loc, ValueRange parts, const Exchange &plan) {
  SmallVector<Value> buffers, gathered;
  for (Value part : parts) {
    auto type = cast<RankedTensorType>(part.getType());
    buffers.push_back(AllocOp::create(builder, loc, SharedType::get(type.getShape(), type.getElementType()), IntegerAttr()));
  }
  for (auto [part, buffer] : llvm::zip_equal(parts, buffers)) {
    if (plan.acrossCtas)
      RemoteStoreOp::create(builder, loc, part, buffer);
    else
      LocalStoreOp::create(builder, loc, part, buffer);
  }
  for (auto [part, buffer] : llvm::zip_equal(parts, buffers))
    gathered.push_back(LocalLoadOp::create(builder, loc, withLayout(part.getType(), plan.gather), buffer));
  return gathered;
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

LogicalResult expand(tile::ReduceOp op) {
  const Layout &layout = layoutOf(op.getValue());
  int64_t axis = op.getAxis();
  FailureOr<Exchange> plan = planExchange(op, layout, axis);
  if (failed(plan))
    return failure();
  OpBuilder builder(op);
  Location loc = op.getLoc();
  Type type = partType(op.getValue(), *plan, axis, partialExtent(layout, axis));
  Value part = PartialReduceOp::create(builder, loc, type, op.getKind(), op.getValue(), axis);
  Value gathered = exchange(builder, loc, part, *plan).front();
  Value whole = tile::ReduceOp::create(builder, loc, withLayout(op.getType(), plan->result), op.getKind(), gathered, axis);
  op.replaceAllUsesWith(converted(builder, loc, whole, op.getType()));
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
  SmallVector<Value> gathered = exchange(builder, loc, part.getOutputs(), *plan);
  SmallVector<Type> results;
  for (Type type : op.getResultTypes())
    results.push_back(withLayout(type, plan->result));
  OperationState state(loc, tile::CombineOp::getOperationName());
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
    for (Operation *op : wide) {
      auto reduce = dyn_cast<tile::ReduceOp>(op);
      if (failed(reduce ? expand(reduce) : expand(cast<tile::CombineOp>(op))))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace kpkg::kgpu
