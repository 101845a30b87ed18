// Emits the elements of a tile that a loop needs, by its defining op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }

/// Matches a reshape that only adds and drops dimensions of extent 1. Returns the operand's dimension for each result
/// dimension, or -1 for new ones.
std::optional<SmallVector<int>> KernelEmitter::unitReshape(tile::ReshapeOp op) {
  ArrayRef<int64_t> from = shapeOf(op.getValue()), to = shapeOf(op.getResult());
  SmallVector<int> source(to.size(), -1);
  size_t next = 0;
  for (size_t dim = 0; dim < to.size(); ++dim) {
    if (to[dim] == 1)
      continue;
    while (next < from.size() && from[next] == 1)
      ++next;
    if (next == from.size() || from[next] != to[dim])
      return std::nullopt;
    source[dim] = next++;
  }
  return source;
}

/// Returns the position in `operand` of the elements `position` of the result of `op`, a broadcast, permute, reshape,
/// extract or elementwise op.
Position KernelEmitter::operandPosition(Operation *op, Value operand, const Position &position) {
  ArrayRef<int64_t> shape = shapeOf(operand);
  Position result;
  result.index.assign(shape.size(), indexConstant(0));
  auto take = [&](int from, int to) {
    if (shape[from] == 1)
      return;
    result.index[from] = position.index[to];
    if (position.vector == to)
      result.vector = from;
  };
  if (auto permute = dyn_cast<tile::PermuteOp>(op)) {
    for (auto [dim, source] : llvm::enumerate(permute.getPermutation()))
      take(source, dim);
  } else if (auto reshape = dyn_cast<tile::ReshapeOp>(op)) {
    for (auto [dim, source] : llvm::enumerate(*unitReshape(reshape)))
      if (source >= 0)
        take(source, dim);
  } else if (auto extract = dyn_cast<tile::ExtractOp>(op)) {
    for (auto [dim, offset, step] : llvm::enumerate(extract.getOffsets(), extract.getSteps())) {
      take(dim, dim);
      Value &index = result.index[dim]; // Null in the uniform tail, which steps of 1 alone have.
      if (shapeOf(extract.getResult())[dim] == 1)
        index = indexConstant(offset);
      else if (index && shape[dim] != 1)
        index = add(mul(index, indexConstant(step)), indexConstant(offset));
    }
  } else {
    for (int dim = 0, rank = shape.size(); dim < rank; ++dim)
      take(dim, dim);
  }
  return result;
}

Value KernelEmitter::emit(Value tile, const Position &position) {
  if (Value scalar = scalars.lookup(tile))
    return scalar;
  std::vector<const void *> key = {tile.getAsOpaquePointer(),
                                   reinterpret_cast<const void *>(intptr_t(position.vector))};
  for (Value index : position.index)
    key.push_back(index ? index.getAsOpaquePointer() : nullptr);
  for (Scope &scope : scopes)
    if (auto found = scope.values.find(key); found != scope.values.end())
      return found->second;
  llvm::SaveAndRestore place(loc, tile.getLoc()); // line tables name the op, not its user
  Value value = emitUncached(tile, position);
  if (!value)
    llvm::report_fatal_error("tile value without an emission rule");
  if (!scopes.empty())
    scopes[levelOf(value)].values[key] = value;
  return value;
}

Value KernelEmitter::emitUncached(Value tile, const Position &position) {
  bool beyond = llvm::is_contained(position.index, Value());
  if (auto buffer = buffers.find(tile); buffer != buffers.end() && !beyond)
    return readBuffer(tile, buffer->second, position);
  Operation *op = tile.getDefiningOp();
  if (!op) {
    failed = true;
    emitError(tile.getLoc()) << "tile argument without a buffer";
    return constant(builder.getZeroAttr(registerType(getElementTypeOrSelf(tile))));
  }
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::ConstantOp constantOp) {
        auto dense = cast<DenseElementsAttr>(constantOp.getValue());
        return emitConstant(dense.getSplatValue<Attribute>(), dense.getElementType());
      })
      .Case([&](tile::SplatOp splat) { return scalars.at(splat.getValue()); })
      .Case([&](tile::IotaOp) -> Value {
        if (position.vector < 0)
          return position.index[0];
        SmallVector<int64_t> ids;
        for (int64_t lane = 0; lane < lanes; ++lane)
          ids.push_back(lane);
        auto type = VectorType::get({lanes}, builder.getIndexType());
        Value lane = constant(DenseElementsAttr::get(type, ArrayRef<int64_t>(ids)));
        return add(splatTo(position.index[0], lanes), lane);
      })
      .Case([&](tile::LoadOp load) { return emitLoad(load, position); })
      .Case([&](tile::GatherOp gather) { return emitGather(gather, position); })
      .Case([&](tile::ReshapeOp reshape) { return emitReshape(reshape, position); })
      .Case([&](tile::ExtractOp extract) { return emitExtract(extract, position); })
      .Case<tile::BroadcastOp, tile::PermuteOp>([&](Operation *shapeOp) {
        return emit(shapeOp->getOperand(0), operandPosition(shapeOp, shapeOp->getOperand(0), position));
      })
      // Reductions of an axis of extent 1 return their operand; others have a buffer.
      .Case([&](tile::ReduceOp reduce) { return emit(reduce.getValue(), position); })
      .Default([&](Operation *) -> Value {
        if (auto select = dyn_cast<arith::SelectOp>(op)) {
          Value condition = isa<TensorType>(select.getCondition().getType()) ? emit(select.getCondition(), position)
                                                                             : scalars.at(select.getCondition());
          // In the uniform tail the condition may be constant, and then the other side need not be uniform.
          BoolAttr known;
          if (matchPattern(condition, m_Constant(&known)))
            return emit(known.getValue() ? select.getTrueValue() : select.getFalseValue(), position);
        }
        if (auto compareOp = dyn_cast<arith::CmpIOp>(op); compareOp && beyond)
          if (Value tail = comparisonTail(compareOp, position))
            return tail;
        if (auto compareOp = dyn_cast<arith::CmpIOp>(op))
          if (Value known = assumedComparison(compareOp, position))
            return known;
        SmallVector<Value> operands;
        for (Value operand : op->getOperands())
          operands.push_back(isa<TensorType>(operand.getType()) ? emit(operand, position) : scalars.at(operand));
        return emitElementwise(op, operands);
      });
}

/// Returns the row-major index of an element of a tile of shape `shape`.
Value KernelEmitter::linearIndex(const Position &position, ArrayRef<int64_t> shape) {
  Value linear = indexConstant(0);
  for (auto [dim, extent] : llvm::enumerate(shape)) {
    linear = mul(linear, indexConstant(extent));
    linear = add(linear, position.index[dim]);
  }
  return linear;
}

Value KernelEmitter::emitReshape(tile::ReshapeOp op, const Position &position) {
  if (unitReshape(op))
    return emit(op.getValue(), operandPosition(op, op.getValue(), position));
  ArrayRef<int64_t> from = shapeOf(op.getValue()), to = shapeOf(op.getResult());
  auto split = [&](Value linear) {
    Position source;
    source.index.assign(from.size(), indexConstant(0));
    for (int dim = from.size(); dim-- > 0;) {
      if (from[dim] == 1)
        continue;
      source.index[dim] = dim ? make<arith::RemUIOp>(linear, indexConstant(from[dim])) : linear;
      linear = make<arith::DivUIOp>(linear, indexConstant(from[dim]));
    }
    return source;
  };
  Value linear = linearIndex(position, to);
  if (position.vector < 0)
    return emit(op.getValue(), split(linear));
  // A vector that stays within one row on both sides stays a vector.
  auto innermost = [](ArrayRef<int64_t> shape) {
    int dim = shape.size() - 1;
    while (dim > 0 && shape[dim] == 1)
      --dim;
    return dim;
  };
  int last = innermost(from);
  if (position.vector == innermost(to) && from[last] % lanes == 0 && to[position.vector] % lanes == 0 &&
      alignedChunks) {
    Position source = split(linear);
    source.vector = last;
    return emit(op.getValue(), source);
  }
  return emitByLanes(op.getResult(), position, [&](Position one) { return split(linearIndex(one, to)); });
}

Value KernelEmitter::readBuffer(Value tile, const Buffer &buffer, const Position &position) {
  Value pointer = buffer.pointer;
  int vector = position.vector;
  for (int dim = 0, rank = buffer.stride.size(); dim < rank; ++dim)
    if (dim != vector && buffer.stride[dim])
      pointer = elementPointer(pointer, buffer.element, mul(position.index[dim], indexConstant(buffer.stride[dim])));
  ArrayRef<int64_t> shape = shapeOf(tile);
  Value value;
  if (vector < 0) {
    value = hoisted(pointer, [&] { return loadElements(pointer, buffer.element, 0); });
  } else if (buffer.stride[vector] == 1) {
    pointer = elementPointer(pointer, buffer.element, position.index[vector]);
    value = hoisted(pointer, [&] { return loadElements(pointer, buffer.element, lanes); });
  } else {
    Value limit = indexConstant(shape[vector] - 1);
    SmallVector<Value> pointers;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value index = smin(add(position.index[vector], indexConstant(lane)), limit);
      pointers.push_back(elementPointer(pointer, buffer.element, mul(index, indexConstant(buffer.stride[vector]))));
    }
    value = hoisted(pointers, [&]() -> Value {
      Type type = memoryType(buffer.element);
      Value raw = constant(builder.getZeroAttr(VectorType::get({lanes}, type)));
      for (auto [lane, at] : llvm::enumerate(pointers)) {
        Value one = LLVM::LoadOp::create(builder, loc, type, at, unsigned(memoryBytes(buffer.element)));
        raw = vector::InsertOp::create(builder, loc, one, raw, ArrayRef<int64_t>{int64_t(lane)});
      }
      return fromMemory(raw, buffer.element);
    });
  }
  if (buffer.clipped < 0 || (!checkedLoads && buffer.clipped == vector))
    return value;
  // Elements in the uniform tail were not written.
  Value end = extentOf(tile, position, buffer.clipped);
  assert(end && "a clipped buffer has an extent");
  Position tail = position;
  tail.index[buffer.clipped] = Value();
  if (buffer.clipped == vector)
    tail.vector = -1;
  if (buffer.clipped == vector && alignedChunks) {
    // Whole vectors were written, so the vector at the tail's start is complete. Only later vectors are computed.
    Value written = compare(arith::CmpIPredicate::slt, position.index[vector], end);
    auto branch = scf::IfOp::create(builder, loc, TypeRange{value.getType()}, written, true);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(builder, loc, value);
    builder.setInsertionPointToStart(branch.elseBlock());
    openScope(branch, /*barrier=*/true);
    scf::YieldOp::create(builder, loc, splatTo(emit(tile, tail), lanes));
    closeScope();
    return branch.getResult(0);
  }
  Value rest = emit(tile, tail);
  if (vector < 0)
    return choose(compare(arith::CmpIPredicate::slt, position.index[buffer.clipped], end), value, rest);
  Value inside;
  if (buffer.clipped == vector) {
    inside = laneMask(Value(), sub(end, position.index[vector]));
  } else { // Every lane is in a different line.
    inside = constant(builder.getZeroAttr(VectorType::get({lanes}, builder.getI1Type())));
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Position one = position;
      one.vector = -1;
      one.index[vector] = add(position.index[vector], indexConstant(lane));
      Value written =
          compare(arith::CmpIPredicate::slt, position.index[buffer.clipped], extentOf(tile, one, buffer.clipped));
      inside = vector::InsertOp::create(builder, loc, written, inside, ArrayRef<int64_t>{lane});
    }
  }
  return choose(inside, value, splatTo(rest, lanes));
}

void KernelEmitter::writeBuffer(const Buffer &buffer, const Position &position, Value value) {
  Value pointer = buffer.pointer;
  for (int dim = 0, rank = buffer.stride.size(); dim < rank; ++dim)
    if (buffer.stride[dim] && position.index[dim])
      pointer = elementPointer(pointer, buffer.element, mul(position.index[dim], indexConstant(buffer.stride[dim])));
  if (position.vector >= 0) {
    assert(buffer.stride[position.vector] == 1 && "vectors run along the innermost dimension");
    value = splatTo(value, lanes);
  }
  storeElements(value, pointer, buffer.element);
}

} // namespace kpkg::lower::cpu
