// Computes from which index on a tile is uniform, and up to which index its loads need no mask.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static int64_t extent(Value tile, int dim) { return cast<RankedTensorType>(tile.getType()).getDimSize(dim); }

/// Returns c if `tile` is c + i at index i of `dim`, else null.
Value KernelEmitter::linearOffset(Value tile, const Position &position, int dim) {
  Operation *op = tile.getDefiningOp();
  if (!op || scalars.count(tile) || extent(tile, dim) == 1)
    return Value();
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case([&](tile::IotaOp) { return indexConstant(0); })
      .Case<tile::BroadcastOp, tile::PermuteOp, tile::ReshapeOp>([&](Operation *shapeOp) {
        if (auto reshape = dyn_cast<tile::ReshapeOp>(shapeOp); reshape && !unitReshape(reshape))
          return Value();
        auto [source, to] = throughShape(shapeOp, position, dim);
        return to < 0 ? Value() : linearOffset(shapeOp->getOperand(0), source, to);
      })
      .Case([&](arith::AddIOp sum) {
        for (auto [a, b] : {std::pair(sum.getLhs(), sum.getRhs()), std::pair(sum.getRhs(), sum.getLhs())}) {
          Value linear = linearOffset(a, position, dim);
          Value other = linear ? uniformAlong(b, position, dim) : Value();
          if (other && other.getType().isIndex())
            return add(linear, other);
        }
        return Value();
      })
      .Default(Value());
}

/// Returns the position in the operand of a shape op, and the operand's dimension for `dim` (-1: a broadcast
/// dimension).
std::pair<Position, int> KernelEmitter::throughShape(Operation *op, const Position &position, int dim) {
  Position marked = position;
  marked.vector = dim;
  Position source = operandPosition(op, op->getOperand(0), marked);
  int to = source.vector;
  source.vector = -1;
  return {source, to};
}

/// Returns the value of `tile` when it does not vary along `dim`, else null.
Value KernelEmitter::uniformAlong(Value tile, const Position &position, int dim) {
  Value end = extentOf(tile, position, dim);
  if (!end || end != indexConstant(0))
    return Value();
  Position tail = position;
  tail.vector = -1;
  tail.index[dim] = Value();
  for (auto [at, index] : llvm::enumerate(tail.index))
    if (int(at) != dim && !index && extent(tile, at) > 1)
      return Value(); // Several dimensions would be uniform at once.
  return emit(tile, tail);
}

/// Matches iota + c < b and similar comparisons. Returns the index along `dim` from which on the comparison is
/// constant, and its value there.
std::optional<std::pair<Value, bool>> KernelEmitter::comparisonExtent(arith::CmpIOp op, const Position &position,
                                                                      int dim) {
  using P = arith::CmpIPredicate;
  for (bool swapped : {false, true}) {
    Value a = swapped ? op.getRhs() : op.getLhs(), b = swapped ? op.getLhs() : op.getRhs();
    P predicate = op.getPredicate();
    if (swapped) {
      switch (predicate) {
      case P::slt:
        predicate = P::sgt;
        break;
      case P::sle:
        predicate = P::sge;
        break;
      case P::sgt:
        predicate = P::slt;
        break;
      case P::sge:
        predicate = P::sle;
        break;
      default:
        break;
      }
    }
    bool strictly = predicate == P::slt || predicate == P::sge;
    if (!strictly && predicate != P::sle && predicate != P::sgt)
      return std::nullopt;
    Value offset = linearOffset(a, position, dim);
    Value bound = offset ? uniformAlong(b, position, dim) : Value();
    if (!bound)
      continue;
    // i + offset < bound holds exactly for i < bound - offset.
    Value end = sub(bound, offset);
    if (!strictly)
      end = add(end, indexConstant(1));
    end = smin(smax(end, indexConstant(0)), indexConstant(extent(op.getResult(), dim)));
    return std::pair(end, predicate == P::sge || predicate == P::sgt);
  }
  return std::nullopt;
}

/// Returns the constant value of a comparison in the uniform tail along one dimension, if it varies before the tail.
Value KernelEmitter::comparisonTail(arith::CmpIOp op, const Position &position) {
  for (auto [dim, index] : llvm::enumerate(position.index))
    if (!index && extent(op.getResult(), dim) > 1)
      if (auto found = comparisonExtent(op, position, dim))
        return constant(builder.getBoolAttr(found->second));
  return Value();
}

Value KernelEmitter::extentOf(Value tile, Position position, int dim) {
  Value zero = indexConstant(0);
  if (scalars.count(tile) || extent(tile, dim) == 1)
    return zero;
  position.vector = -1;
  position.index[dim] = Value();
  std::vector<const void *> key = {tile.getAsOpaquePointer(), reinterpret_cast<const void *>(intptr_t(dim))};
  for (Value index : position.index)
    key.push_back(index ? index.getAsOpaquePointer() : nullptr);
  key.push_back(throughBuffers ? &throughBuffers : nullptr);
  for (Scope &scope : scopes)
    if (auto found = scope.extents.find(key); found != scope.extents.end())
      return found->second;
  Value end = computeExtent(tile, position, dim);
  if (!scopes.empty())
    scopes[end ? levelOf(end) : scopes.size() - 1].extents[key] = end;
  return end;
}

Value KernelEmitter::computeExtent(Value tile, const Position &position, int dim) {
  Value zero = indexConstant(0);
  Operation *op = tile.getDefiningOp();
  auto buffer = buffers.find(tile);
  if (!op || (buffer != buffers.end() && buffer->second.clipped != dim && !throughBuffers))
    return Value();
  // The contents of a clipped buffer depend on the ops below it, even if these have buffers by now.
  llvm::SaveAndRestore through(throughBuffers, throughBuffers || buffer != buffers.end());
  return llvm::TypeSwitch<Operation *, Value>(op)
      .Case<tile::SplatOp, arith::ConstantOp>([&](Operation *) { return zero; })
      .Case([&](tile::LoadOp load) {
        const View &view = views.at(load.getView());
        SmallVector<Value> offsets;
        for (Value offset : load.getOffsets())
          offsets.push_back(scalars.at(offset));
        Value end = smin(smax(sub(view.shape[dim], offsets[dim]), zero), indexConstant(extent(tile, dim)));
        return choose(outerValid(view, offsets, position, dim), end, zero);
      })
      .Case<tile::BroadcastOp, tile::PermuteOp, tile::ReshapeOp>([&](Operation *shapeOp) {
        if (auto reshape = dyn_cast<tile::ReshapeOp>(shapeOp); reshape && !unitReshape(reshape))
          return Value();
        auto [source, to] = throughShape(shapeOp, position, dim);
        return to < 0 ? zero : extentOf(shapeOp->getOperand(0), source, to);
      })
      .Case([&](tile::ExtractOp extract) { return extractedExtent(extract, position, dim); })
      .Default([&](Operation *) -> Value {
        if (!isElementwise(op))
          return Value();
        if (auto compareOp = dyn_cast<arith::CmpIOp>(op))
          if (auto found = comparisonExtent(compareOp, position, dim))
            return found->first;
        if (auto select = dyn_cast<arith::SelectOp>(op))
          if (auto mask = select.getCondition().getDefiningOp<arith::CmpIOp>(); mask && isa<TensorType>(mask.getType()))
            if (auto found = comparisonExtent(mask, position, dim)) {
              Value side = extentOf(found->second ? select.getTrueValue() : select.getFalseValue(), position, dim);
              return side ? smax(side, found->first) : Value();
            }
        Value end = zero;
        for (Value operand : op->getOperands()) {
          if (!isa<TensorType>(operand.getType()))
            continue;
          Value one = extentOf(operand, position, dim);
          if (!one)
            return Value();
          end = smax(end, one);
        }
        return end;
      });
}

/// Collects the indices along position.vector below which the loads and clipped buffers under `tile` need no lane mask.
/// If `assume` is true, it also collects indices below which comparisons with the lane's index are constant, and
/// records these comparisons.
void KernelEmitter::unmaskedLimits(Value tile, const Position &position, SmallVectorImpl<Value> &limits, bool assume) {
  if (scalars.count(tile) || position.vector < 0)
    return;
  int dim = position.vector;
  std::vector<const void *> key = {tile.getAsOpaquePointer(), reinterpret_cast<const void *>(intptr_t(dim))};
  for (auto [at, index] : llvm::enumerate(position.index))
    key.push_back(!index || int(at) == dim ? nullptr : index.getAsOpaquePointer());
  key.push_back(throughBuffers ? &throughBuffers : nullptr);
  if (!limitsSeen.insert(key).second)
    return;
  bool isClipped = false;
  if (auto buffer = buffers.find(tile); buffer != buffers.end()) {
    if (buffer->second.clipped == dim)
      limits.push_back(extentOf(tile, position, dim));
    if (buffer->second.clipped == dim || (buffer->second.clipped < 0 && !throughBuffers))
      return;
    // The buffer is clipped along another dimension. How much of a line was written depends on whether the line is
    // inside the views of the loads below.
    isClipped = true;
  }
  llvm::SaveAndRestore through(throughBuffers, throughBuffers || isClipped);
  Operation *op = tile.getDefiningOp();
  if (!op)
    return;
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    Value end = extentOf(tile, position, dim);
    Value begins = compare(arith::CmpIPredicate::sge, scalars.at(load.getOffsets()[dim]), indexConstant(0));
    Value limit = choose(begins, end, indexConstant(0));
    // An absent tensor reads as its fill everywhere, from a line of fills in memory.
    Value absent = lineOfFills(load) ? views.at(load.getView()).absent : Value();
    limits.push_back(absent ? choose(absent, indexConstant(extent(tile, dim)), limit) : limit);
    return;
  }
  if (isa<tile::GatherOp>(op))
    return; // Lanes of gathers are always checked.
  if (auto compareOp = dyn_cast<arith::CmpIOp>(op); compareOp && assume) {
    Position along = position;
    along.vector = -1;
    auto [known, fresh] = assumed.try_emplace(op, key);
    if (auto found = comparisonExtent(compareOp, along, dim); found && fresh)
      limits.push_back(found->first);
    else // The comparison is not constant, or is reached at two positions.
      known->second.clear();
  }
  auto reshape = dyn_cast<tile::ReshapeOp>(op);
  auto extract = dyn_cast<tile::ExtractOp>(op);
  bool isMoved = extract && (extract.getOffsets()[dim] != 0 || extract.getSteps()[dim] != 1);
  if ((reshape && !unitReshape(reshape)) || isMoved) {
    limits.push_back(indexConstant(0));
    return;
  }
  for (Value operand : op->getOperands())
    if (isa<TensorType>(operand.getType()))
      unmaskedLimits(operand, operandPosition(op, operand, position), limits, assume);
}

/// Returns the value of a comparison for the lanes below the limits of unmaskedLimits, if it is constant there.
Value KernelEmitter::assumedComparison(arith::CmpIOp op, const Position &position) {
  auto known = assumed.find(op);
  if (checkedLoads || position.vector < 0 || known == assumed.end() || known->second.empty())
    return Value();
  Position along = position;
  along.vector = -1;
  auto found = comparisonExtent(op, along, position.vector);
  return found ? constant(builder.getBoolAttr(!found->second)) : Value();
}

} // namespace kpkg::lower::cpu
