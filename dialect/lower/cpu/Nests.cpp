// Emits loop nests over the elements of a tile: reductions, buffers and stores in one pass over registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The vector dimension has three consecutive loops. The first is unrolled over groups of vectors, and the second
// handles single vectors, both without masks. The third has a lane mask on every load.
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using kpkg::tile::ReduceKind;

namespace kpkg::lower::cpu {

struct KernelEmitter::NestState {
  ArrayRef<int64_t> shape;
  ArrayRef<Sink> sinks;
  SmallVector<const Sink *> reduces;
  int reduceDim, vectorDim;
  int64_t unroll;
  Position position;
  SmallVector<Value> begin, end; // Per dimension, for stores and for tiles with given ends; empty otherwise.
  SmallVector<Value> linesEnd;   // For reductions: the ends of the lines whose results are read.
  Value nonempty;                // For a store: at least one element is inside the view.
  SmallVector<Value> results;    // For reductions in a nest without outer loops.
  SmallVector<Value> lastValues; // The operand of each reduction in the last chunk, including lanes beyond the end.
};

static int innermostDim(ArrayRef<int64_t> shape) {
  for (int dim = shape.size(); dim-- > 0;)
    if (shape[dim] > 1)
      return dim;
  return -1;
}

/// Opens loops over `dims`, emits the body with nest.position set, and closes the loops.
void KernelEmitter::outerLoops(ArrayRef<int> dims, NestState &nest, llvm::function_ref<void()> body) {
  if (dims.empty())
    return body();
  int dim = dims.front();
  Value begin = nest.begin.empty() ? indexConstant(0) : nest.begin[dim];
  Value end = !nest.linesEnd.empty() ? nest.linesEnd[dim]
              : nest.end.empty()     ? indexConstant(nest.shape[dim])
                                     : nest.end[dim];
  scf::ForOp loop = openLoop(begin, end, indexConstant(1));
  nest.position.index[dim] = loop.getInductionVar();
  outerLoops(dims.drop_front(), nest, body);
  closeLoop(loop);
}

/// Emits all sinks for `chunks` consecutive vectors from `base` on. Returns the new accumulators, chunk-major.
SmallVector<Value> KernelEmitter::emitChunks(NestState &nest, Value base, int64_t chunks, bool checked,
                                             ValueRange accumulators) {
  bool previous = std::exchange(checkedLoads, checked);
  SmallVector<Value> next(accumulators.begin(), accumulators.end());
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    nest.lastValues.clear();
    Position position = nest.position;
    if (nest.vectorDim >= 0) {
      position.vector = nest.vectorDim;
      position.index[nest.vectorDim] = add(base, indexConstant(chunk * lanes));
    }
    size_t number = chunk * nest.reduces.size();
    // Emits all values before any write, because they may read a buffer that is written.
    SmallVector<Value> values;
    for (const Sink &sink : nest.sinks)
      values.push_back(emit(sink.value, position));
    for (auto [sink, value] : llvm::zip(nest.sinks, values)) {
      if (sink.kind == Sink::Materialise) {
        writeBuffer(sink.buffer, position, value);
      } else if (sink.kind == Sink::Store) {
        storeChunk(cast<tile::StoreOp>(sink.op), position, value, checked ? nest.end[nest.vectorDim] : Value());
      } else {
        auto reduce = cast<tile::ReduceOp>(sink.op);
        Type element = cast<RankedTensorType>(sink.value.getType()).getElementType();
        Value wide = toAccumulator(splatTo(value, lanes), element);
        nest.lastValues.push_back(wide);
        if (checked && nest.reduceDim == nest.vectorDim) {
          Value mask = laneMask(Value(), sub(nest.end[nest.vectorDim], position.index[nest.vectorDim]));
          wide = choose(mask, wide, neutral(reduce.getKind(), wide.getType()));
        }
        next[number] = accumulate(reduce.getKind(), next[number], wide);
        ++number;
      }
    }
  }
  checkedLoads = previous;
  return next;
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

/// Combines `total` with the elements of the uniform tail along the vector dimension. `last` is the reduction's last
/// operand, a vector that includes lanes behind the end. It is null when unknown.
Value KernelEmitter::addTail(NestState &nest, const Sink &sink, Value total, Value last) {
  int dim = nest.vectorDim;
  Value end = nest.end[dim], rest = sub(indexConstant(nest.shape[dim]), end);
  auto reduce = cast<tile::ReduceOp>(sink.op);
  Value some = compare(arith::CmpIPredicate::sgt, rest, indexConstant(0));
  auto branch = scf::IfOp::create(builder, loc, TypeRange{total.getType()}, some, true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  openScope(branch, /*barrier=*/true);
  auto emitTail = [&] {
    Position tail = nest.position;
    tail.index[dim] = Value();
    return toAccumulator(emit(sink.value, tail), reduce.getType().getElementType());
  };
  Value element = last ? lastLane(last, end, emitTail) : emitTail();
  ReduceKind kind = reduce.getKind();
  scf::YieldOp::create(builder, loc, accumulate(kind, total, repeated(kind, element, rest)));
  closeScope();
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, total);
  return branch.getResult(0);
}

/// Emits the loops along the vector dimension, with the reductions along it (if any).
void KernelEmitter::emitAlongVector(NestState &nest) {
  int dim = nest.vectorDim;
  Value full = indexConstant(nest.shape[dim]), zero = indexConstant(0);
  bool isBounded = !nest.begin.empty();
  Value begin = isBounded ? nest.begin[dim] : zero, end = isBounded ? nest.end[dim] : zero;
  Position along = nest.position;
  along.vector = dim;
  along.index[dim] = zero;
  if (!isBounded)
    for (const Sink &sink : nest.sinks) {
      bool whole = sink.kind == Sink::Materialise && sink.buffer.clipped != dim;
      bool product = sink.kind == Sink::Reduce && cast<tile::ReduceOp>(sink.op).getKind() == ReduceKind::Prod;
      Value one = whole || product ? Value() : extentOf(sink.value, along, dim);
      end = end == full || !one ? full : smax(end, one);
    }
  SmallVector<Value> limits;
  limitsSeen.clear();
  assumed.clear();
  for (const Sink &sink : nest.sinks)
    unmaskedLimits(sink.value, along, limits, true);
  Value limit = end;
  for (Value one : limits)
    limit = smin(limit, one);
  // Unmasked loops: [mainEnd, stepEnd) by vectors, after [begin, mainEnd) by groups of vectors.
  int64_t group = nest.unroll * lanes;
  auto wholeGroups = [&](int64_t size) {
    Value length = smax(sub(limit, begin), zero);
    return add(begin, mul(make<arith::DivUIOp>(length, indexConstant(size)), indexConstant(size)));
  };
  Value mainEnd = wholeGroups(group), stepEnd = nest.unroll > 1 ? wholeGroups(lanes) : mainEnd;
  SmallVector<Value> savedEnd = nest.end;
  nest.end.resize(nest.shape.size());
  nest.end[dim] = end;

  size_t count = nest.reduces.size();
  SmallVector<Value> initial;
  for (int64_t chunk = 0; chunk < nest.unroll; ++chunk)
    for (const Sink *sink : nest.reduces) {
      auto reduce = cast<tile::ReduceOp>(sink->op);
      Type element = accumulatorElement(reduce.getType().getElementType());
      initial.push_back(neutral(reduce.getKind(), VectorType::get({lanes}, element)));
    }
  // The masked loop also returns the reductions' last operands. Their last lane is an element of the uniform tail.
  auto runLoop = [&](Value from, Value to, int64_t chunks, bool checked, ValueRange inits) -> SmallVector<Value> {
    if (from == to)
      return SmallVector<Value>(inits);
    scf::ForOp loop = openLoop(from, to, indexConstant(chunks * lanes), inits);
    SmallVector<Value> arguments(loop.getRegionIterArgs());
    SmallVector<Value> next =
        emitChunks(nest, loop.getInductionVar(), chunks, checked, ArrayRef(arguments).take_front(chunks * count));
    if (next.size() < arguments.size())
      llvm::append_range(next, nest.lastValues);
    closeLoop(loop, next);
    return SmallVector<Value>(loop.getResults());
  };
  SmallVector<Value> accumulators = runLoop(begin, mainEnd, nest.unroll, false, initial);
  for (size_t sink = 0; sink < count; ++sink) // A tree, so that the order does not depend on the row's length.
    for (int64_t step = 1; step < nest.unroll; step *= 2)
      for (int64_t chunk = 0; chunk + step < nest.unroll; chunk += 2 * step)
        accumulators[chunk * count + sink] =
            accumulate(cast<tile::ReduceOp>(nest.reduces[sink]->op).getKind(), accumulators[chunk * count + sink],
                       accumulators[(chunk + step) * count + sink]);
  accumulators.truncate(count);
  if (nest.unroll > 1)
    accumulators = runLoop(mainEnd, stepEnd, 1, false, accumulators);
  constexpr int64_t expensive = 10; // Cheaper elements of the tail are often constants.
  bool lastIsTail = end != full && nest.shape[dim] % lanes == 0 &&
                    llvm::any_of(nest.reduces, [&](const Sink *sink) { return coneCost(sink->value) >= expensive; });
  if (lastIsTail)
    accumulators.append(initial.begin(), initial.begin() + count);
  accumulators = runLoop(stepEnd, end, 1, true, accumulators);

  for (size_t number = 0; number < count; ++number) {
    const Sink *sink = nest.reduces[number];
    Value accumulator = accumulators[number];
    auto reduce = cast<tile::ReduceOp>(sink->op);
    ReduceKind kind = reduce.getKind();
    Value total = horizontal(kind, accumulator);
    if (end != full)
      total = addTail(nest, *sink, total, lastIsTail ? accumulators[count + number] : Value());
    nest.results.push_back(fromAccumulator(total, reduce.getType().getElementType()));
  }
  nest.end = savedEnd;
}

/// Emits reductions along a dimension other than the vectors'. The reduction loop runs inside the loops over vectors.
void KernelEmitter::emitAcrossVector(NestState &nest) {
  int vector = nest.vectorDim, dim = nest.reduceDim;
  Value full = indexConstant(nest.shape[dim]), zero = indexConstant(0);
  Value width = nest.linesEnd.empty() ? indexConstant(nest.shape[vector]) : nest.linesEnd[vector];
  Position along = nest.position;
  along.vector = -1;
  along.index[vector] = Value();
  along.index[dim] = zero;
  Value end = zero, safe;
  Position lengthwise = nest.position;
  lengthwise.vector = dim;
  lengthwise.index[vector] = Value();
  lengthwise.index[dim] = zero;
  SmallVector<Value> limits;
  limitsSeen.clear();
  for (const Sink *sink : nest.reduces) {
    bool product = cast<tile::ReduceOp>(sink->op).getKind() == ReduceKind::Prod;
    Value one = product ? Value() : extentOf(sink->value, along, dim);
    end = end == full || !one ? full : smax(end, one);
    unmaskedLimits(sink->value, lengthwise, limits, false);
  }
  safe = end;
  for (Value one : limits)
    safe = smin(safe, one);
  // Loops without lane masks also require all rows to be inside all views.
  Position across = nest.position;
  across.vector = vector;
  across.index[vector] = zero;
  across.index[dim] = Value();
  limits.clear();
  limitsSeen.clear();
  assumed.clear();
  Value limit = width;
  for (const Sink *sink : nest.reduces)
    unmaskedLimits(sink->value, across, limits, true);
  for (Value one : limits)
    limit = smin(limit, one);
  limit = choose(compare(arith::CmpIPredicate::eq, safe, end), limit, zero);
  int64_t group = nest.unroll * lanes;
  auto wholeGroups = [&](int64_t size) {
    return mul(make<arith::DivUIOp>(limit, indexConstant(size)), indexConstant(size));
  };
  Value mainEnd = wholeGroups(group), stepEnd = nest.unroll > 1 ? wholeGroups(lanes) : mainEnd;

  auto runLoop = [&](Value from, Value to, int64_t chunks, bool checked) {
    if (from == to)
      return;
    scf::ForOp loop = openLoop(from, to, indexConstant(chunks * lanes));
    SmallVector<Value> inits;
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      for (const Sink *sink : nest.reduces) {
        auto reduce = cast<tile::ReduceOp>(sink->op);
        inits.push_back(
            neutral(reduce.getKind(), VectorType::get({lanes}, accumulatorElement(reduce.getType().getElementType()))));
      }
    scf::ForOp inner = openLoop(zero, end, indexConstant(1), inits);
    nest.position.index[dim] = inner.getInductionVar();
    SmallVector<Value> next =
        emitChunks(nest, loop.getInductionVar(), chunks, checked, SmallVector<Value>(inner.getRegionIterArgs()));
    closeLoop(inner, next);
    SmallVector<Value> totals(inner.getResults());
    bool previous = std::exchange(checkedLoads, checked);
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      for (auto [i, sink] : llvm::enumerate(nest.reduces)) {
        auto reduce = cast<tile::ReduceOp>(sink->op);
        ReduceKind kind = reduce.getKind();
        Type element = reduce.getType().getElementType();
        Value total = totals[chunk * nest.reduces.size() + i];
        Position at = nest.position;
        at.vector = vector;
        at.index[vector] = add(loop.getInductionVar(), indexConstant(chunk * lanes));
        if (end != full) {
          Value rest = sub(full, end);
          Value some = compare(arith::CmpIPredicate::sgt, rest, zero);
          auto branch = scf::IfOp::create(builder, loc, TypeRange{total.getType()}, some, true);
          OpBuilder::InsertionGuard guard(builder);
          builder.setInsertionPointToStart(branch.thenBlock());
          openScope(branch, /*barrier=*/true);
          Position tail = at;
          tail.index[dim] = Value();
          Value uniform = toAccumulator(splatTo(emit(sink->value, tail), lanes), element);
          scf::YieldOp::create(builder, loc, accumulate(kind, total, repeated(kind, uniform, rest)));
          closeScope();
          builder.setInsertionPointToStart(branch.elseBlock());
          scf::YieldOp::create(builder, loc, total);
          total = branch.getResult(0);
        }
        at.index[dim] = zero;
        writeBuffer(sink->buffer, at, fromAccumulator(total, element));
      }
    checkedLoads = previous;
    closeLoop(loop);
  };
  runLoop(zero, mainEnd, nest.unroll, false);
  if (nest.unroll > 1)
    runLoop(mainEnd, stepEnd, 1, false);
  runLoop(stepEnd, width, 1, true);
}

/// Restricts a store's nest to the elements inside its view.
void KernelEmitter::boundStore(NestState &nest, tile::StoreOp store) {
  const View &view = views.at(store.getView());
  if (view.unit >= 0 && nest.shape[view.unit] > 1)
    nest.vectorDim = view.unit;
  Value zero = indexConstant(0);
  nest.nonempty = view.valid;
  for (auto [dim, extent] : llvm::enumerate(nest.shape)) {
    Value offset = scalars.at(store.getOffsets()[dim]);
    Value all = indexConstant(extent);
    nest.begin.push_back(smin(smax(sub(zero, offset), zero), all));
    nest.end.push_back(smin(smax(sub(view.shape[dim], offset), zero), all));
    if (extent == 1)
      nest.nonempty = both(nest.nonempty, compare(arith::CmpIPredicate::ult, offset, view.shape[dim]));
  }
  int first = nest.vectorDim;
  for (int dim = nest.shape.size(); dim-- > 0;)
    if (nest.shape[dim] > 1)
      first = dim;
  if (first >= 0)
    nest.end[first] = choose(nest.nonempty, nest.end[first], nest.begin[first]);
}

LogicalResult KernelEmitter::emitNest(ArrayRef<int64_t> shape, int reduceDim, ArrayRef<Sink> sinks,
                                      ArrayRef<Value> ends) {
  NestState nest;
  nest.shape = shape;
  nest.reduceDim = reduceDim;
  nest.vectorDim = innermostDim(shape);
  nest.position.index.assign(shape.size(), indexConstant(0));
  SmallVector<Sink> owned(sinks);
  openScope(nullptr);
  if (!ends.empty() && reduceDim >= 0) {
    nest.linesEnd.assign(ends.begin(), ends.end());
  } else if (!ends.empty()) {
    nest.begin.assign(shape.size(), indexConstant(0));
    nest.end.assign(ends.begin(), ends.end());
  } else if (owned.front().kind == Sink::Store) {
    auto store = cast<tile::StoreOp>(owned.front().op);
    boundStore(nest, store);
    if (nest.vectorDim < 0) { // One element.
      auto branch = scf::IfOp::create(builder, loc, nest.nonempty, false);
      builder.setInsertionPointToStart(branch.thenBlock());
      openScope(branch, true);
      storeChunk(store, nest.position, emit(store.getValue(), nest.position), Value());
      closeScope();
      builder.setInsertionPointAfter(branch);
      closeScope();
      return failure(failed);
    }
  }
  alignedChunks = nest.begin.empty() || nest.vectorDim < 0 || nest.begin[nest.vectorDim] == indexConstant(0);

  // Results of the reductions: SSA values when there is one element, else buffers.
  SmallVector<int> outer;
  for (int dim = 0, rank = shape.size(); dim < rank; ++dim)
    if (shape[dim] > 1 && dim != nest.vectorDim && dim != reduceDim)
      outer.push_back(dim);
  bool across = reduceDim >= 0 && reduceDim != nest.vectorDim;
  for (Sink &sink : owned)
    if (sink.kind == Sink::Reduce && (across || !outer.empty()))
      sink.buffer = allocate(sink.op->getResult(0).getType());
  nest.sinks = owned;
  int64_t cost = 0;
  for (const Sink &sink : owned) {
    cost += coneCost(sink.value);
    if (sink.kind == Sink::Reduce)
      nest.reduces.push_back(&sink);
  }
  nest.unroll = cost <= 12 ? 4 : cost <= 40 ? 2 : 1;
  while (nest.unroll > 1 && nest.unroll * lanes > shape[std::max(nest.vectorDim, 0)])
    nest.unroll /= 2;

  firstReads.clear();
  constexpr int64_t longRow = 16384; // Bytes; within a row this long the hardware prefetcher follows the stream.
  for (const Sink *sink : nest.reduces)
    visitCone(sink->value, [&](Value tile, bool) {
      if (auto load = tile.getDefiningOp<tile::LoadOp>();
          load && shape.back() * memoryBytes(load.getFill().getType()) <= longRow && dependsOnBlock(load) &&
          reads.insert(load).second)
        firstReads.insert(load);
      return true;
    });
  if (nest.vectorDim < 0) { // One element, nothing to reduce.
    for (const Sink &sink : owned)
      writeBuffer(sink.buffer, nest.position, emit(sink.value, nest.position));
  } else if (across) {
    outerLoops(outer, nest, [&] { emitAcrossVector(nest); });
  } else {
    outerLoops(outer, nest, [&] {
      nest.results.clear();
      emitAlongVector(nest);
      Position at = nest.position;
      at.index[nest.vectorDim] = indexConstant(0);
      if (!outer.empty())
        for (auto [sink, result] : llvm::zip(nest.reduces, nest.results))
          writeBuffer(sink->buffer, at, result);
    });
  }
  closeScope();
  for (size_t i = 0; i < nest.reduces.size(); ++i) {
    const Sink *sink = nest.reduces[i];
    Value tile = sink->op->getResult(0);
    if (across || !outer.empty())
      buffers[tile] = sink->buffer;
    else
      scalars[tile] = nest.results[i];
  }
  for (const Sink &sink : owned)
    if (sink.kind == Sink::Materialise)
      buffers[sink.value] = sink.buffer;
  return failure(failed);
}

} // namespace kpkg::lower::cpu
