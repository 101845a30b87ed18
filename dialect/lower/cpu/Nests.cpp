// Emits loop nests over the elements of a tile: reductions, buffers and stores in one pass over registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The vector dimension has three consecutive loops. The first is unrolled over groups of vectors, and the second
// handles single vectors, both without masks. The third has a lane mask on every load.
#include "dialect/lower/cpu/NestState.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::cpu {

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

/// Stores the only element of a tile, if it lies inside the view.
void KernelEmitter::storeElement(const NestState &nest, tile::StoreOp store) {
  auto branch = scf::IfOp::create(builder, loc, nest.nonempty, false);
  builder.setInsertionPointToStart(branch.thenBlock());
  openScope(branch, true);
  storeChunk(store, nest.position, emit(store.getValue(), nest.position), Value());
  closeScope();
  builder.setInsertionPointAfter(branch);
}

/// Returns the vectors of an iteration of the unrolled loop: fewer for costly elements and for short dimensions.
int64_t KernelEmitter::unrollOf(const NestState &nest) {
  int64_t cost = 0;
  for (const Sink &sink : nest.sinks)
    cost += coneCost(sink.value);
  int64_t unroll = cost <= 12 ? 4 : cost <= 40 ? 2 : 1;
  while (unroll > 1 && unroll * lanes > nest.shape[std::max(nest.vectorDim, 0)])
    unroll /= 2;
  return unroll;
}

/// Sets firstReads, the loads that prefetch ahead, for the reductions of the nest.
void KernelEmitter::findFirstReads(const NestState &nest) {
  firstReads.clear();
  constexpr int64_t longRow = 16384; // Bytes; within a row this long the hardware prefetcher follows the stream.
  for (const Sink *sink : nest.reduces)
    visitCone(sink->value, [&](Value tile, bool) {
      if (auto load = tile.getDefiningOp<tile::LoadOp>();
          load && nest.shape.back() * memoryBytes(load.getFill().getType()) <= longRow && dependsOnBlock(load) &&
          reads.insert(load).second)
        firstReads.insert(load);
      return true;
    });
}

/// Emits the loops over all dimensions.
void KernelEmitter::emitLoops(NestState &nest) {
  if (nest.vectorDim < 0) { // One element, nothing to reduce.
    for (const Sink &sink : nest.sinks)
      writeBuffer(sink.buffer, nest.position, emit(sink.value, nest.position));
    return;
  }
  outerLoops(nest.outer, nest, [&] {
    if (nest.isAcross())
      return emitAcrossVector(nest);
    nest.results.clear();
    emitAlongVector(nest);
    Position at = nest.position;
    at.index[nest.vectorDim] = indexConstant(0);
    if (!nest.outer.empty())
      for (auto [sink, result] : llvm::zip(nest.reduces, nest.results))
        writeBuffer(sink->buffer, at, result);
  });
}

/// Makes the nest's results known as the values of their tiles.
void KernelEmitter::recordResults(const NestState &nest) {
  for (auto [i, sink] : llvm::enumerate(nest.reduces)) {
    Value tile = sink->op->getResult(0);
    if (nest.hasBuffers())
      buffers[tile] = sink->buffer;
    else
      scalars[tile] = nest.results[i];
  }
  for (const Sink &sink : nest.sinks)
    if (sink.kind == Sink::Materialise)
      buffers[sink.value] = sink.buffer;
}

LogicalResult KernelEmitter::emitNest(ArrayRef<int64_t> shape, int reduceDim, ArrayRef<Sink> sinks,
                                      ArrayRef<Value> ends) {
  NestState nest;
  nest.shape = shape;
  nest.reduceDim = reduceDim;
  nest.vectorDim = innermostDim(shape);
  nest.position.index.assign(shape.size(), indexConstant(0));
  nest.sinks.assign(sinks.begin(), sinks.end());
  openScope(nullptr);
  if (!ends.empty() && reduceDim >= 0) {
    nest.linesEnd.assign(ends.begin(), ends.end());
  } else if (!ends.empty()) {
    nest.begin.assign(shape.size(), indexConstant(0));
    nest.end.assign(ends.begin(), ends.end());
  } else if (sinks.front().kind == Sink::Store) {
    auto store = cast<tile::StoreOp>(sinks.front().op);
    boundStore(nest, store);
    if (nest.vectorDim < 0) {
      storeElement(nest, store);
      closeScope();
      return failure(failed);
    }
  }
  alignedChunks = nest.begin.empty() || nest.vectorDim < 0 || nest.begin[nest.vectorDim] == indexConstant(0);

  for (int dim = 0, rank = shape.size(); dim < rank; ++dim)
    if (shape[dim] > 1 && dim != nest.vectorDim && dim != reduceDim)
      nest.outer.push_back(dim);
  for (Sink &sink : nest.sinks)
    if (sink.kind == Sink::Reduce) {
      if (nest.hasBuffers())
        sink.buffer = allocate(sink.op->getResult(0).getType());
      nest.reduces.push_back(&sink);
    }
  nest.unroll = unrollOf(nest);
  findFirstReads(nest);
  emitLoops(nest);
  closeScope();
  recordResults(nest);
  return failure(failed);
}

} // namespace kpkg::lower::cpu
