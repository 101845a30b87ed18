// Emits the ops of a block: scalars and views at once, tiles when a sink needs them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static bool oneElement(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return tile && tile.getNumElements() == 1;
}

/// A reduction along an axis of extent 1 returns its operand.
static bool isIdentity(tile::ReduceOp op) {
  return cast<RankedTensorType>(op.getValue().getType()).getDimSize(op.getAxis()) == 1;
}

bool KernelEmitter::isLazy(Operation *op) {
  if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
    return false;
  if (isa<arith::ConstantOp, tile::SplatOp, tile::IotaOp, tile::BroadcastOp, tile::ReshapeOp, tile::PermuteOp,
          tile::ExtractOp, tile::LoadOp, tile::GatherOp>(op))
    return true;
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return isIdentity(reduce);
  return isElementwise(op);
}

LogicalResult KernelEmitter::emitBlock(Block &block) {
  planBlock(block);
  llvm::SaveAndRestore outer(current);
  for (Operation &op : block.without_terminator()) {
    loc = op.getLoc();
    current = &op;
    if (mlir::failed(emitOp(op)) || failed)
      return failure();
  }
  return flush();
}

/// Emits one op. A lazy tile of one element with scalar operands is emitted as a scalar, unless it reads memory that a
/// later op writes.
LogicalResult KernelEmitter::emitOp(Operation &op) {
  if (auto reduce = dyn_cast<tile::ReduceOp>(op); reduce && !isIdentity(reduce))
    return enqueue(reduce);
  if (isLazy(&op)) {
    if (auto constantOp = dyn_cast<arith::ConstantOp>(op))
      if (!isa<SplatElementsAttr>(constantOp.getValue()))
        return error(&op, "tile constants with different elements are not supported on the CPU");
    if (!isa<tile::LoadOp, tile::GatherOp>(op) || !isWritten(op.getOperand(0)))
      return success();
    // The memory may change before the tile is used.
    if (mlir::failed(flush()))
      return failure();
    Value tile = op.getResult(0);
    if (oneElement(tile.getType())) {
      scalars[tile] = scalarOf(tile);
      return success();
    }
    FailureOr<Buffer> buffer = bufferOf(tile);
    return success(succeeded(buffer));
  }
  bool usesTiles = llvm::any_of(op.getOperandTypes(), llvm::IsaPred<TensorType>) || op.getNumRegions();
  bool touchesMemory = isa<tile::StoreOp, tile::LoadOp>(op);
  if ((usesTiles || touchesMemory) && mlir::failed(flush()))
    return failure();
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](tile::StoreOp store) {
        return isa<TensorType>(store.getValue().getType()) ? emitStore(store) : emitScalarMemoryOp(op);
      })
      .Case([&](tile::LoadOp) { return emitScalarMemoryOp(op); })
      .Case([&](tile::ScatterOp scatter) { return emitScatter(scatter); })
      .Case([&](tile::AtomicOp atomic) { return emitAtomic(atomic); })
      .Case([&](tile::ArgReduceOp reduce) { return emitArgReduce(reduce); })
      .Case([&](tile::CombineOp combine) { return emitCombine(combine); })
      .Case([&](tile::ScanOp scan) { return emitScan(scan); })
      .Case([&](tile::DotOp dot) { return emitDot(dot); })
      .Case([&](tile::ScalarOp read) {
        scalars[read.getResult()] = scalarOf(read.getValue());
        return success();
      })
      .Case([&](tile::JoinOp join) { return emitJoin(join); })
      .Case([&](tile::PrintOp print) { return emitPrint(print); })
      .Case([&](tile::AssertOp assertion) { return emitAssert(assertion); })
      .Case([&](tile::ForTilesOp loop) { return emitTileLoopBody(loop); })
      .Case([&](scf::ForOp loop) { return emitFor(loop); })
      .Case([&](scf::IfOp branch) { return emitIf(branch); })
      .Case([&](scf::WhileOp loop) { return emitWhile(loop); })
      .Default([&](Operation *other) { return tile::isThreadOp(other) ? emitThreadOp(op) : emitScalarOp(op); });
}

LogicalResult KernelEmitter::emitScalarMemoryOp(Operation &op) {
  auto load = dyn_cast<tile::LoadOp>(op);
  const View &view = views.at(load ? load.getView() : cast<tile::StoreOp>(op).getView());
  if (load) {
    scalars[load.getResult()] = loadScalarChecked(view.pointer, view.valid, scalars.at(load.getFill()), view.element);
    return success();
  }
  Value pointer =
      view.valid ? Value(LLVM::SelectOp::create(builder, loc, view.valid, view.pointer, dummy)) : view.pointer;
  storeElements(scalars.at(cast<tile::StoreOp>(op).getValue()), pointer, view.element);
  return success();
}

bool KernelEmitter::isWritten(Value view) {
  auto argument = dyn_cast<BlockArgument>(tile::argumentOf(view));
  return !argument || writtenArguments.contains(argument.getArgNumber());
}

View KernelEmitter::scratchMemory(tile::ScratchOp op) {
  tile::ViewType type = op.getResult().getType();
  View view;
  view.element = type.getElementType();
  view.unit = type.getUnit();
  view.pointer = allocateBytes(llvm::product_of(op.getShape()) * memoryBytes(view.element));
  for (auto [dim, extent] : llvm::enumerate(op.getShape())) {
    view.shape.push_back(indexConstant(extent));
    view.stride.push_back(indexConstant(op.getStride(int64_t(dim))));
  }
  return view;
}

View KernelEmitter::dropDimensions(tile::DropOp op) {
  const View &from = views.at(op.getView());
  View to;
  to.element = from.element;
  to.pointer = from.pointer;
  to.valid = from.valid;
  to.absent = from.absent;
  to.unit = op.getResult().getType().getUnit();
  Value inside;
  for (auto [dim, index] : llvm::zip(op.getDims(), op.getIndices())) {
    Value at = scalars.at(index);
    inside = both(inside, compare(arith::CmpIPredicate::ult, at, from.shape[dim]));
    to.pointer = elementPointer(to.pointer, from.element, mul(at, from.stride[dim]));
  }
  for (int64_t dim = 0, rank = from.shape.size(); dim < rank; ++dim) {
    if (llvm::is_contained(op.getDims(), dim))
      continue;
    to.shape.push_back(from.shape[dim]);
    to.stride.push_back(from.stride[dim]);
  }
  to.valid = both(to.valid, inside);
  return to;
}

View KernelEmitter::sliceDimension(tile::SliceOp op) {
  View part = views.at(op.getView());
  int64_t dim = op.getDimension();
  Value begin = smin(smax(scalars.at(op.getBegin()), indexConstant(0)), part.shape[dim]);
  Value end = smin(smax(scalars.at(op.getEnd()), begin), part.shape[dim]);
  part.pointer = elementPointer(part.pointer, part.element, mul(begin, part.stride[dim]));
  part.shape[dim] = sub(end, begin);
  part.unit = op.getResult().getType().getUnit();
  return part;
}

LogicalResult KernelEmitter::emitScalarOp(Operation &op) {
  if (auto constantOp = dyn_cast<arith::ConstantOp>(op)) {
    scalars[constantOp.getResult()] = emitConstant(constantOp.getValue(), constantOp.getType());
    return success();
  }
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](tile::BlockIdOp id) {
        scalars[id.getResult()] = blockIds[int(id.getAxis())];
        return success();
      })
      .Case([&](tile::GridDimOp dim) {
        scalars[dim.getResult()] = gridDims[int(dim.getAxis())];
        return success();
      })
      .Case([&](tile::DimOp dim) {
        scalars[dim.getResult()] = views.at(dim.getView()).shape[dim.getDimension()];
        return success();
      })
      .Case([&](tile::StrideOp stride) {
        scalars[stride.getResult()] = views.at(stride.getView()).stride[stride.getDimension()];
        return success();
      })
      .Case([&](tile::ScratchOp scratch) {
        View view = tile::isOfThreads(kernel) ? sharedMemoryOf(scratch) : scratchMemory(scratch);
        views[scratch.getResult()] = view;
        return success();
      })
      .Case([&](tile::SliceOp slice) {
        View view = sliceDimension(slice);
        views[slice.getResult()] = view;
        return success();
      })
      .Case([&](tile::DropOp drop) {
        View view = dropDimensions(drop);
        views[drop.getResult()] = view;
        return success();
      })
      .Default([&](Operation *) -> LogicalResult {
        if (!isElementwise(&op))
          return error(&op, "op is not supported on the CPU");
        SmallVector<Value> operands;
        for (Value operand : op.getOperands())
          operands.push_back(scalars.at(operand));
        scalars[op.getResult(0)] = emitElementwise(&op, operands);
        return success();
      });
}

} // namespace kpkg::lower::cpu
