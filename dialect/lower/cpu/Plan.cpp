// Decides which reductions share a nest, and which lazy tiles get a buffer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }

KernelEmitter::Space KernelEmitter::spaceOf(tile::ReduceOp op) {
  Space space;
  space.shape.assign(shapeOf(op.getValue()).begin(), shapeOf(op.getValue()).end());
  space.reduceDim = op.getAxis();
  return space;
}

/// Returns whether computing `op` twice costs more than a store to and a load from the cache.
bool KernelEmitter::isExpensive(Operation *op) {
  if (auto load = dyn_cast<tile::LoadOp>(op)) {
    int64_t innermost = -1;
    for (auto [dim, extent] : llvm::enumerate(shapeOf(load.getResult())))
      if (extent > 1)
        innermost = dim;
    return innermost >= 0 && load.getView().getType().getUnit() != innermost;
  }
  return isa<tile::GatherOp, math::ExpOp, math::Exp2Op, math::ExpM1Op, math::LogOp, math::Log2Op, math::Log10Op,
             math::Log1pOp, math::SinOp, math::CosOp, math::TanOp, math::TanhOp, math::ErfOp, math::PowFOp,
             math::CbrtOp, math::AtanOp, math::Atan2Op, arith::RemFOp, arith::RemSIOp, arith::RemUIOp, arith::DivSIOp,
             arith::DivUIOp, arith::FloorDivSIOp>(op);
}

/// Visits the lazy tiles that `root` is computed from, including `root`, users before operands. `identity` tells that
/// an element of the root needs only the same element of the tile. The visitor returns false to stop the descent.
void KernelEmitter::visitCone(Value root, llvm::function_ref<bool(Value, bool)> visit) {
  llvm::DenseSet<std::pair<Value, int>> seen; // Each tile at most twice: with identity and without.
  SmallVector<std::pair<Value, int>> work = {{root, 1}};
  while (!work.empty()) {
    auto [value, identity] = work.pop_back_val();
    if (!isa<TensorType>(value.getType()) || scalars.count(value) || buffers.count(value) ||
        !seen.insert({value, identity}).second || !visit(value, identity))
      continue;
    Operation *op = value.getDefiningOp();
    if (!op || !isLazy(op))
      continue;
    bool same = identity && (isElementwise(op) || isa<tile::GatherOp>(op));
    for (Value operand : llvm::reverse(op->getOperands()))
      work.emplace_back(operand, same);
  }
}

/// Returns whether consecutive blocks read different elements.
bool KernelEmitter::dependsOnBlock(tile::LoadOp op) {
  SmallVector<Value> work(op.getOffsets());
  for (Value view = op.getView(); Value source = tile::sourceOfPart(view); view = source)
    llvm::append_range(work, llvm::drop_begin(view.getDefiningOp()->getOperands()));
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    Operation *definition = value.getDefiningOp();
    if (!definition)
      continue;
    if (isa<tile::BlockIdOp>(definition))
      return true;
    llvm::append_range(work, definition->getOperands());
  }
  return false;
}

int64_t KernelEmitter::coneCost(Value value) {
  int64_t cost = 0;
  llvm::DenseSet<Value> seen;
  visitCone(value, [&](Value tile, bool) {
    if (!seen.insert(tile).second)
      return false;
    Operation *op = tile.getDefiningOp();
    if (op && isElementwise(op))
      cost += isExpensive(op) ? 10 : 1;
    return true;
  });
  return cost;
}

/// Fills `planned` with the expensive tiles of this block that several nests need, or that a loop inside it needs.
void KernelEmitter::planBlock(Block &block) {
  llvm::DenseMap<Value, llvm::SmallSetVector<int, 2>> nests;
  int nest = 0;
  Space space;
  llvm::DenseSet<Value> open; // Results of the reductions in the current nest.
  auto mark = [&](Value root, int number) {
    llvm::DenseSet<Value> seen;
    visitCone(root, [&](Value tile, bool) {
      if (!seen.insert(tile).second)
        return false;
      nests[tile].insert(number);
      return true;
    });
  };
  for (Operation &op : block) {
    if (op.getNumRegions() && !isa<tile::CombineOp, tile::ScanOp>(op)) {
      open.clear();
      nest += 2;
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (isa<TensorType>(operand.getType()) && operand.getParentBlock() == &block)
            for (int twice : {nest - 1, nest})
              mark(operand, isa<scf::IfOp>(op) ? nest : twice);
      });
      continue;
    }
    if (isLazy(&op) || llvm::none_of(op.getOperandTypes(), llvm::IsaPred<TensorType>))
      continue;
    auto reduce = dyn_cast<tile::ReduceOp>(op);
    bool joins = reduce && !open.empty() && spaceOf(reduce) == space;
    if (joins)
      visitCone(reduce.getValue(), [&](Value tile, bool) {
        joins &= !open.count(tile);
        return joins;
      });
    if (!joins) {
      ++nest;
      open.clear();
    }
    if (reduce) {
      space = spaceOf(reduce);
      open.insert(reduce.getResult());
    }
    for (Value operand : op.getOperands())
      mark(operand, nest);
  }
  // Strided parts are read lane by lane, and an op in between would be computed so too.
  for (auto extract : block.getOps<tile::ExtractOp>())
    if (llvm::any_of(extract.getSteps(), [](int64_t step) { return step != 1; }))
      if (Operation *op = extract.getValue().getDefiningOp(); op && op->getBlock() == &block && isElementwise(op))
        planned.insert(extract.getValue());
  for (auto &[tile, numbers] : nests)
    if (numbers.size() > 1 && tile.getDefiningOp() && isLazy(tile.getDefiningOp()) && isExpensive(tile.getDefiningOp()))
      planned.insert(tile);
}

/// Gives the planned tiles under `root` their buffers. Tiles that fit the nest of `fused` are written by sinks in it.
LogicalResult KernelEmitter::materialisePlanned(Value root, const Space *space, SmallVectorImpl<Sink> *fused) {
  SmallVector<std::pair<Value, bool>> found; // With "may be written by the nest itself".
  llvm::DenseMap<Value, size_t> number;
  visitCone(root, [&](Value tile, bool identity) {
    if (!planned.count(tile))
      return true;
    auto [it, fresh] = number.try_emplace(tile, found.size());
    if (fresh)
      found.emplace_back(tile, identity);
    else
      found[it->second].second &= identity;
    return true;
  });
  for (auto [tile, identity] : llvm::reverse(found)) {
    if (buffers.count(tile))
      continue;
    bool inNest = fused && identity && space && shapeOf(tile) == ArrayRef<int64_t>(space->shape);
    Buffer buffer = allocate(tile.getType());
    if (!inNest) {
      planned.erase(tile); // So that the nested call does not find it again.
      if (mlir::failed(materialise(tile, buffer, demandedEnds(tile))))
        return failure();
      buffers[tile] = buffer;
      continue;
    }
    if (llvm::any_of(*fused, [&](const Sink &sink) { return sink.value == tile && sink.kind == Sink::Materialise; }))
      continue;
    Sink sink{Sink::Materialise, tile};
    sink.buffer = buffer;
    // Only the part before the uniform tail is written. Readers compute the tail.
    Position origin;
    origin.index.assign(space->shape.size(), indexConstant(0));
    if (clippable(tile, space->reduceDim))
      sink.buffer.clipped = space->reduceDim;
    fused->push_back(sink);
  }
  return success();
}

LogicalResult KernelEmitter::enqueue(tile::ReduceOp op) {
  Space space = spaceOf(op);
  bool joins = !pending.empty() && space == pendingSpace;
  if (joins)
    visitCone(op.getValue(), [&](Value tile, bool) {
      for (tile::ReduceOp other : pending)
        joins &= tile != other.getResult();
      return joins;
    });
  if (!joins && mlir::failed(flush()))
    return failure();
  pendingSpace = space;
  pending.push_back(op);
  return success();
}

/// Emits the nest of the pending reductions.
LogicalResult KernelEmitter::flush() {
  if (pending.empty())
    return success();
  SmallVector<tile::ReduceOp> reduces = std::exchange(pending, {});
  int innermost = -1;
  for (auto [dim, extent] : llvm::enumerate(pendingSpace.shape))
    if (extent > 1)
      innermost = dim;
  bool along = innermost == pendingSpace.reduceDim;
  SmallVector<Sink> fused;
  for (tile::ReduceOp reduce : reduces)
    if (mlir::failed(materialisePlanned(reduce.getValue(), along ? &pendingSpace : nullptr, along ? &fused : nullptr)))
      return failure();
  for (tile::ReduceOp reduce : reduces)
    fused.push_back({Sink::Reduce, reduce.getValue(), reduce});
  Space space = pendingSpace;
  // Excludes lines whose results are never read.
  SmallVector<Value> ends;
  for (const Sink &sink : fused) {
    SmallVector<Value> one = demandedEnds(sink.kind == Sink::Reduce ? sink.op->getResult(0) : sink.value);
    if (one.empty())
      return emitNest(space.shape, space.reduceDim, fused);
    if (ends.empty())
      ends = one;
    for (auto [dim, end] : llvm::enumerate(one))
      ends[dim] = ends[dim] == end ? end : smax(ends[dim], end);
  }
  return emitNest(space.shape, space.reduceDim, fused, ends);
}

/// Returns whether the uniform tail of `tile` along `dim` can be recomputed by each reader, because it depends only on
/// loads and scalars.
bool KernelEmitter::clippable(Value tile, int dim) {
  openScope(nullptr);
  Position origin;
  origin.index.assign(shapeOf(tile).size(), indexConstant(0));
  OpBuilder::InsertionGuard guard(builder);
  Value end = extentOf(tile, origin, dim);
  closeScope();
  return end && end != indexConstant(shapeOf(tile)[dim]);
}

/// Writes the tile, up to `ends` if given, into `buffer`, which does not become the tile's own buffer.
LogicalResult KernelEmitter::materialise(Value value, Buffer buffer, ArrayRef<Value> ends) {
  bool isPlanned = planned.erase(value); // Otherwise it would be its own prerequisite.
  LogicalResult prepared = materialisePlanned(value, nullptr, nullptr);
  if (isPlanned)
    planned.insert(value);
  if (mlir::failed(prepared))
    return failure();
  Sink sink{Sink::Materialise, value};
  sink.buffer = buffer;
  std::optional<Buffer> own;
  if (auto found = buffers.find(value); found != buffers.end())
    own = found->second;
  LogicalResult result = emitNest(shapeOf(value), -1, sink, ends);
  buffers.erase(value);
  if (own)
    buffers[value] = *own;
  return result;
}

/// Completes a clipped buffer: the nest that filled it wrote whole vectors up to the uniform tail.
void KernelEmitter::writeTail(Value value, const Buffer &buffer) {
  int dim = buffer.clipped;
  SmallVector<Value> ends = demandedEnds(value);
  Position position;
  position.index.assign(shapeOf(value).size(), indexConstant(0));
  openScope(nullptr);
  SmallVector<scf::ForOp> loops;
  for (auto [at, extent] : llvm::enumerate(shapeOf(value))) {
    if (int(at) == dim || extent == 1)
      continue;
    Value end = ends.empty() ? indexConstant(extent) : ends[at];
    loops.push_back(openLoop(indexConstant(0), end, indexConstant(1)));
    position.index[at] = loops.back().getInductionVar();
  }
  Position tail = position;
  tail.index[dim] = Value();
  Value written = add(extentOf(value, position, dim), indexConstant(lanes - 1));
  Value begin = mul(make<arith::DivUIOp>(written, indexConstant(lanes)), indexConstant(lanes));
  Value rest = emit(value, tail);
  loops.push_back(openLoop(begin, indexConstant(shapeOf(value)[dim]), indexConstant(lanes)));
  position.vector = dim;
  position.index[dim] = loops.back().getInductionVar();
  writeBuffer(buffer, position, rest);
  for (scf::ForOp loop : llvm::reverse(loops))
    closeLoop(loop);
  closeScope();
}

/// Returns a buffer with all elements of the tile that are read.
FailureOr<Buffer> KernelEmitter::bufferOf(Value value) {
  if (auto found = buffers.find(value); found != buffers.end()) {
    if (found->second.clipped >= 0) {
      writeTail(value, found->second);
      found->second.clipped = -1;
    }
    return found->second;
  }
  planned.erase(value);
  Buffer buffer = allocate(value.getType());
  if (mlir::failed(materialise(value, buffer, demandedEnds(value))))
    return failure();
  buffers[value] = buffer;
  return buffer;
}

LogicalResult KernelEmitter::emitStore(tile::StoreOp op) {
  if (mlir::failed(materialisePlanned(op.getValue(), nullptr, nullptr)))
    return failure();
  Sink sink{Sink::Store, op.getValue(), op};
  return emitNest(shapeOf(op.getValue()), -1, sink);
}

} // namespace kpkg::lower::cpu
