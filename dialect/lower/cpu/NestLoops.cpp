// Emits the innermost loops of a nest: vectors, and reductions along or across them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/NestState.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using kpkg::tile::ReduceKind;

namespace kpkg::lower::cpu {

static ReduceKind kindOf(const Sink &sink) { return cast<tile::ReduceOp>(sink.op).getKind(); }
static Type resultElement(const Sink &sink) { return cast<tile::ReduceOp>(sink.op).getType().getElementType(); }

/// Returns the neutral elements of the reductions for `chunks` vectors, chunk-major.
SmallVector<Value> KernelEmitter::neutralChunks(const NestState &nest, int64_t chunks) {
  SmallVector<Value> result;
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (const Sink *sink : nest.reduces)
      result.push_back(neutral(kindOf(*sink), VectorType::get({lanes}, accumulatorElement(resultElement(*sink)))));
  return result;
}

/// Returns where loops without lane masks over `tiles` must end, at most `end`.
Value KernelEmitter::unmaskedEnd(ArrayRef<Value> tiles, const Position &position, Value end) {
  SmallVector<Value> limits;
  limitsSeen.clear();
  assumed.clear();
  for (Value tile : tiles)
    unmaskedLimits(tile, position, limits, true);
  for (Value limit : limits)
    end = smin(end, limit);
  return end;
}

Value KernelEmitter::wholeParts(Value length, int64_t size) {
  return mul(make<arith::DivUIOp>(length, indexConstant(size)), indexConstant(size));
}

/// Returns the last lane of the vector that contains `end`, if that lane lies behind `end`. Otherwise returns the
/// result of `emitOther`.
Value KernelEmitter::lastLane(Value vector, Value end, llvm::function_ref<Value()> emitOther) {
  Value over = make<arith::RemUIOp>(end, indexConstant(lanes));
  Value isBehind = compare(arith::CmpIPredicate::ne, over, indexConstant(0));
  Type type = cast<VectorType>(vector.getType()).getElementType();
  auto branch = scf::IfOp::create(builder, loc, TypeRange{type}, isBehind, true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc,
                       vector::ExtractOp::create(builder, loc, vector, ArrayRef<int64_t>{lanes - 1}).getResult());
  builder.setInsertionPointToStart(branch.elseBlock());
  openScope(branch, /*barrier=*/true);
  scf::YieldOp::create(builder, loc, emitOther());
  closeScope();
  return branch.getResult(0);
}

/// Combines `total` with the `rest` elements of the uniform tail, if there are any. `emitElement` emits one of them.
Value KernelEmitter::addTail(ReduceKind kind, Value total, Value rest, llvm::function_ref<Value()> emitElement) {
  Value some = compare(arith::CmpIPredicate::sgt, rest, indexConstant(0));
  auto branch = scf::IfOp::create(builder, loc, TypeRange{total.getType()}, some, true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  openScope(branch, /*barrier=*/true);
  Value element = emitElement();
  scf::YieldOp::create(builder, loc, accumulate(kind, total, repeated(kind, element, rest)));
  closeScope();
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, total);
  return branch.getResult(0);
}

/// Returns where the nest ends along the vector dimension. Elements behind it are outside a view or uniform.
Value KernelEmitter::endAlong(const NestState &nest, const Position &along) {
  int dim = nest.vectorDim;
  if (!nest.begin.empty())
    return nest.end[dim];
  Value full = indexConstant(nest.shape[dim]), end = indexConstant(0);
  for (const Sink &sink : nest.sinks) {
    bool whole = sink.kind == Sink::Materialise && sink.buffer.clipped != dim;
    bool product = sink.kind == Sink::Reduce && kindOf(sink) == ReduceKind::Prod;
    Value one = whole || product ? Value() : extentOf(sink.value, along, dim);
    end = end == full || !one ? full : smax(end, one);
  }
  return end;
}

/// Emits one loop along the vector dimension, and returns the new accumulators. If `inits` has further values, one for
/// each reduction, the loop also returns the operands of the last chunk.
SmallVector<Value> KernelEmitter::loopAlong(NestState &nest, Value from, Value to, int64_t chunks, bool checked,
                                            ValueRange inits) {
  if (from == to)
    return SmallVector<Value>(inits);
  scf::ForOp loop = openLoop(from, to, indexConstant(chunks * lanes), inits);
  SmallVector<Value> arguments(loop.getRegionIterArgs());
  SmallVector<Value> next = emitChunks(nest, loop.getInductionVar(), chunks, checked,
                                       ArrayRef(arguments).take_front(chunks * nest.reduces.size()));
  if (next.size() < arguments.size())
    llvm::append_range(next, nest.lastValues);
  closeLoop(loop, next);
  return SmallVector<Value>(loop.getResults());
}

/// Combines the accumulators of a group of vectors, as a tree, so that the order does not depend on the row's length.
void KernelEmitter::combineGroup(const NestState &nest, SmallVectorImpl<Value> &accumulators) {
  size_t count = nest.reduces.size();
  for (size_t sink = 0; sink < count; ++sink)
    for (int64_t step = 1; step < nest.unroll; step *= 2)
      for (int64_t chunk = 0; chunk + step < nest.unroll; chunk += 2 * step)
        accumulators[chunk * count + sink] = accumulate(kindOf(*nest.reduces[sink]), accumulators[chunk * count + sink],
                                                        accumulators[(chunk + step) * count + sink]);
  accumulators.truncate(count);
}

/// Adds to nest.results the reductions of the accumulators' lanes and of the uniform tail. `lastOperands` are vectors
/// that include lanes behind the end, or empty when unknown.
void KernelEmitter::finishAlong(NestState &nest, ArrayRef<Value> accumulators, ArrayRef<Value> lastOperands) {
  int dim = nest.vectorDim;
  Value full = indexConstant(nest.shape[dim]), end = nest.end[dim];
  for (auto [number, sink] : llvm::enumerate(nest.reduces)) {
    Type element = resultElement(*sink);
    Value total = horizontal(kindOf(*sink), accumulators[number]);
    auto emitTail = [&] {
      Position tail = nest.position;
      tail.index[dim] = Value();
      return toAccumulator(emit(sink->value, tail), element);
    };
    if (end != full)
      total = addTail(kindOf(*sink), total, sub(full, end), [&] {
        return lastOperands.empty() ? emitTail() : lastLane(lastOperands[number], end, emitTail);
      });
    nest.results.push_back(fromAccumulator(total, element));
  }
}

/// Emits the loops along the vector dimension, with the reductions along it (if any).
void KernelEmitter::emitAlongVector(NestState &nest) {
  int dim = nest.vectorDim;
  Value full = indexConstant(nest.shape[dim]), zero = indexConstant(0);
  Position along = nest.position;
  along.vector = dim;
  along.index[dim] = zero;
  Value begin = nest.begin.empty() ? zero : nest.begin[dim], end = endAlong(nest, along);
  SmallVector<Value> tiles;
  for (const Sink &sink : nest.sinks)
    tiles.push_back(sink.value);
  Value limit = unmaskedEnd(tiles, along, end);
  // Unmasked loops: [mainEnd, stepEnd) by vectors, after [begin, mainEnd) by groups of vectors.
  auto wholeGroups = [&](int64_t size) { return add(begin, wholeParts(smax(sub(limit, begin), zero), size)); };
  Value mainEnd = wholeGroups(nest.unroll * lanes), stepEnd = nest.unroll > 1 ? wholeGroups(lanes) : mainEnd;
  SmallVector<Value> savedEnd = nest.end;
  nest.end.resize(nest.shape.size());
  nest.end[dim] = end;

  size_t count = nest.reduces.size();
  SmallVector<Value> initial = neutralChunks(nest, nest.unroll);
  SmallVector<Value> accumulators = loopAlong(nest, begin, mainEnd, nest.unroll, false, initial);
  combineGroup(nest, accumulators);
  if (nest.unroll > 1)
    accumulators = loopAlong(nest, mainEnd, stepEnd, 1, false, accumulators);
  // The masked loop also returns the reductions' last operands. Their last lane is an element of the uniform tail.
  constexpr int64_t expensive = 10; // Cheaper elements of the tail are often constants.
  bool lastIsTail = end != full && nest.shape[dim] % lanes == 0 &&
                    llvm::any_of(nest.reduces, [&](const Sink *sink) { return coneCost(sink->value) >= expensive; });
  if (lastIsTail)
    accumulators.append(initial.begin(), initial.begin() + count);
  accumulators = loopAlong(nest, stepEnd, end, 1, true, accumulators);
  finishAlong(nest, ArrayRef(accumulators).take_front(count), ArrayRef(accumulators).drop_front(count));
  nest.end = savedEnd;
}

/// Returns the end of the reduction loop, and the end of the vectors whose loads need no lane masks. The latter is 0
/// unless all rows before the former are inside all views.
std::pair<Value, Value> KernelEmitter::endsAcross(const NestState &nest, Value width) {
  int vector = nest.vectorDim, dim = nest.reduceDim;
  Value full = indexConstant(nest.shape[dim]), zero = indexConstant(0);
  auto positionOf = [&](int lanesAlong) {
    Position position = nest.position;
    position.vector = lanesAlong;
    position.index[vector] = lanesAlong == vector ? zero : Value();
    position.index[dim] = lanesAlong == vector ? Value() : zero;
    return position;
  };
  Position along = positionOf(-1), lengthwise = positionOf(dim);
  Value end = zero;
  SmallVector<Value> limits, tiles;
  limitsSeen.clear();
  for (const Sink *sink : nest.reduces) {
    Value one = kindOf(*sink) == ReduceKind::Prod ? Value() : extentOf(sink->value, along, dim);
    end = end == full || !one ? full : smax(end, one);
    unmaskedLimits(sink->value, lengthwise, limits, false);
    tiles.push_back(sink->value);
  }
  Value safe = end;
  for (Value limit : limits)
    safe = smin(safe, limit);
  Value limit = unmaskedEnd(tiles, positionOf(vector), width);
  return {end, choose(compare(arith::CmpIPredicate::eq, safe, end), limit, zero)};
}

/// Emits one loop over vectors from `from` to `to`, with the reduction loop up to `end` inside, and writes the results.
void KernelEmitter::loopAcross(NestState &nest, Value end, Value from, Value to, int64_t chunks, bool checked) {
  if (from == to)
    return;
  int vector = nest.vectorDim, dim = nest.reduceDim;
  Value full = indexConstant(nest.shape[dim]), zero = indexConstant(0);
  scf::ForOp loop = openLoop(from, to, indexConstant(chunks * lanes));
  SmallVector<Value> inits = neutralChunks(nest, chunks);
  scf::ForOp inner = openLoop(zero, end, indexConstant(1), inits);
  nest.position.index[dim] = inner.getInductionVar();
  SmallVector<Value> next =
      emitChunks(nest, loop.getInductionVar(), chunks, checked, SmallVector<Value>(inner.getRegionIterArgs()));
  closeLoop(inner, next);
  SmallVector<Value> totals(inner.getResults());
  bool previous = std::exchange(checkedLoads, checked);
  for (int64_t chunk = 0; chunk < chunks; ++chunk)
    for (auto [i, sink] : llvm::enumerate(nest.reduces)) {
      Type element = resultElement(*sink);
      Value total = totals[chunk * nest.reduces.size() + i];
      Position at = nest.position;
      at.vector = vector;
      at.index[vector] = add(loop.getInductionVar(), indexConstant(chunk * lanes));
      if (end != full)
        total = addTail(kindOf(*sink), total, sub(full, end), [&] {
          Position tail = at;
          tail.index[dim] = Value();
          return toAccumulator(splatTo(emit(sink->value, tail), lanes), element);
        });
      at.index[dim] = zero;
      writeBuffer(sink->buffer, at, fromAccumulator(total, element));
    }
  checkedLoads = previous;
  closeLoop(loop);
}

/// Emits reductions along a dimension other than the vectors'. The reduction loop runs inside the loops over vectors.
void KernelEmitter::emitAcrossVector(NestState &nest) {
  Value zero = indexConstant(0);
  Value width = nest.linesEnd.empty() ? indexConstant(nest.shape[nest.vectorDim]) : nest.linesEnd[nest.vectorDim];
  auto [end, limit] = endsAcross(nest, width);
  Value mainEnd = wholeParts(limit, nest.unroll * lanes),
        stepEnd = nest.unroll > 1 ? wholeParts(limit, lanes) : mainEnd;
  loopAcross(nest, end, zero, mainEnd, nest.unroll, false);
  if (nest.unroll > 1)
    loopAcross(nest, end, mainEnd, stepEnd, 1, false);
  loopAcross(nest, end, stepEnd, width, 1, true);
}

} // namespace kpkg::lower::cpu
