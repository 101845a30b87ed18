// Passes the operands and the accumulator of a tile.dot to the microkernel builder.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }

/// Returns the source of `tile` through permutations: `order[d]` is the source's dimension of the tile's dimension d.
static Value throughPermutes(Value tile, SmallVectorImpl<int64_t> &order) {
  for (int64_t dim = 0, rank = shapeOf(tile).size(); dim < rank; ++dim)
    order.push_back(dim);
  while (auto permute = tile.getDefiningOp<tile::PermuteOp>()) {
    for (int64_t &dim : order)
      dim = permute.getPermutation()[dim];
    tile = permute.getValue();
  }
  return tile;
}

/// Returns the location of matrix number `batch` of the operand (null for rank 2). This is its view if the operand is a
/// load with fill zero, else scratch memory.
FailureOr<DotOperand> KernelEmitter::dotOperand(Value tile, Value batch, bool isLeft) {
  size_t rank = shapeOf(tile).size();
  DotOperand operand;
  operand.elementType = getElementTypeOrSelf(tile.getType());
  SmallVector<int64_t> order;
  Value source = buffers.count(tile) ? tile : throughPermutes(tile, order);
  bool isLazySource = !buffers.count(tile) && !buffers.count(source);
  auto hasZeroFill = [&](Value fill) {
    return matchPattern(scalars.at(fill), m_AnyZeroFloat()) || matchPattern(scalars.at(fill), m_Zero());
  };
  if (auto gather = source.getDefiningOp<tile::GatherOp>(); gather && isLazySource && rank == 2 &&
                                                            hasZeroFill(gather.getFill()) && tile::rowGather(gather) &&
                                                            (isLeft != (order[0] == 1) || canCopyRows(gather)))
    return gatheredOperand(gather, order[0] == 1, isLeft);
  auto load = isLazySource ? source.getDefiningOp<tile::LoadOp>() : tile::LoadOp();
  if (load && hasZeroFill(load.getFill())) {
    const View &view = views.at(load.getView());
    operand.base = view.pointer;
    Value valid = view.valid;
    for (size_t dim = 0; dim < rank; ++dim) {
      int64_t source = order[dim];
      Value offset = scalars.at(load.getOffsets()[source]);
      bool isBatch = rank == 3 && dim == 0;
      if (isBatch) {
        offset = add(offset, batch);
        valid = both(valid, compare(arith::CmpIPredicate::ult, offset, view.shape[source]));
      }
      operand.base = elementPointer(operand.base, view.element, mul(offset, view.stride[source]));
      if (isBatch)
        continue;
      size_t i = dim - (rank - 2);
      operand.stride[i] = view.stride[source];
      operand.begin[i] = smax(sub(indexConstant(0), offset), indexConstant(0));
      operand.end[i] = sub(view.shape[source], offset);
    }
    operand.end[0] = choose(valid, operand.end[0], indexConstant(0));
    return operand;
  }
  FailureOr<Buffer> buffer = bufferOf(tile);
  if (mlir::failed(buffer))
    return failure();
  operand.base = buffer->pointer;
  if (rank == 3)
    operand.base = elementPointer(operand.base, buffer->element, mul(batch, indexConstant(buffer->stride[0])));
  for (size_t i = 0; i < 2; ++i) {
    // A dimension of extent 1 has no stride in the buffer, and is never stepped along.
    int64_t stride = buffer->stride[rank - 2 + i];
    operand.stride[i] = indexConstant(stride ? stride : 1);
  }
  return operand;
}

/// Returns the buffer that accumulates the product, initialised with the accumulator's value.
FailureOr<Buffer> KernelEmitter::accumulatorBuffer(tile::DotOp op) {
  Value accumulator = op.getAccumulator();
  SmallVector<Value> ends = demandedEnds(op.getResult());
  if (auto found = preferred.find(op.getResult()); found != preferred.end()) {
    auto [argument, buffer] = found->second;
    // Accumulates in place when only this accumulator still reads the value that the loop carried here.
    Value reader = argument;
    while (reader != accumulator && reader.hasOneUse() && isElementwise(*reader.user_begin()))
      reader = reader.user_begin()->getResult(0);
    if (reader == accumulator && reader.hasOneUse()) {
      if (argument != accumulator && mlir::failed(materialise(accumulator, buffer, ends)))
        return failure();
      return buffer;
    }
  }
  auto own = buffers.find(accumulator);
  bool isTemporary = own != buffers.end() && own->second.clipped < 0 && accumulator.hasOneUse() &&
                     accumulator.getDefiningOp() && accumulator.getParentBlock() == op->getBlock();
  if (isTemporary)
    return own->second;
  Buffer buffer = allocate(op.getType());
  if (mlir::failed(materialise(accumulator, buffer, ends)))
    return failure();
  return buffer;
}

LogicalResult KernelEmitter::emitDot(tile::DotOp op) {
  Value a = op.getLhs(), b = op.getRhs();
  ArrayRef<int64_t> left = shapeOf(a), right = shapeOf(b);
  size_t rank = left.size();
  Type element = getElementTypeOrSelf(a.getType());
  if (!element.isF32() && !element.isF64() && !element.isF16() && !element.isBF16())
    return error(op, "dot of this element type is not supported on the CPU");
  for (Value tile : op->getOperands())
    if (mlir::failed(materialisePlanned(tile, nullptr, nullptr)))
      return failure();
  // Operands that cannot be read in place are materialised before the loop over the batch.
  FailureOr<Buffer> accumulator = accumulatorBuffer(op);
  if (mlir::failed(accumulator))
    return failure();
  if (rank == 3 &&
      (mlir::failed(dotOperand(a, indexConstant(0), true)) || mlir::failed(dotOperand(b, indexConstant(0), false))))
    return failure();
  bool areHalves = element.isBF16() && getElementTypeOrSelf(b.getType()).isBF16() && accumulator->element.isF32();
  DotShape shape{left[rank - 2], right[rank - 1], left[rank - 1], accumulator->element,
                 target.unit.multipliesPairs && areHalves};
  DotPlan plan = planDot(shape, target.unit);
  Value scratchForDot = allocateBytes(plan.scratchBytes());
  scf::ForOp loop;
  Value batch, pointer = accumulator->pointer;
  if (rank == 3) {
    loop = scf::ForOp::create(builder, loc, indexConstant(0), indexConstant(left[0]), indexConstant(1));
    builder.setInsertionPointToStart(loop.getBody());
    batch = loop.getInductionVar();
    pointer = elementPointer(pointer, accumulator->element, mul(batch, indexConstant(accumulator->stride[0])));
  }
  FailureOr<DotOperand> lhs = dotOperand(a, batch, true), rhs = dotOperand(b, batch, false);
  if (mlir::failed(lhs) || mlir::failed(rhs))
    return failure();
  // Clips rows and columns that are never read.
  auto clip = [&](Value &end, int dim) {
    if (Value demanded = demandedEnd(op.getResult(), dim))
      end = end ? smin(end, demanded) : demanded;
  };
  clip(lhs->end[0], rank - 2);
  clip(rhs->end[1], rank - 1);
  int64_t stride = accumulator->stride[rank - 2];
  buildDot(builder, loc, plan, *lhs, *rhs, pointer, stride ? stride : 1, scratchForDot);
  if (loop)
    builder.setInsertionPointAfter(loop);
  buffers[op.getResult()] = *accumulator;
  return failure(failed);
}

} // namespace kpkg::lower::cpu
