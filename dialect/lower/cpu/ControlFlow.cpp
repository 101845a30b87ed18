// Emits loops and branches: scalars and one-element tiles as SSA values, other tiles in scratch memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kpkg::lower::cpu {

/// Returns whether control flow carries values of this type in registers.
bool KernelEmitter::staysScalar(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  return !tile || tile.getNumElements() == 1;
}

Value KernelEmitter::scalarOf(Value value) {
  if (Value scalar = scalars.lookup(value))
    return scalar;
  Position origin;
  origin.index.assign(cast<RankedTensorType>(value.getType()).getRank(), indexConstant(0));
  openScope(nullptr); // Caches values of tiles that are used more than once.
  Value scalar = emit(value, origin);
  closeScope();
  return scalar;
}

/// Materialises planned tiles of the enclosing blocks that the regions of `op` read, before the regions are emitted.
LogicalResult KernelEmitter::prepareRegions(Operation *op) {
  llvm::SetVector<Value> outside;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (isa<TensorType>(operand.getType()) && !op->isAncestor(operand.getParentBlock()->getParentOp()))
        outside.insert(operand);
  });
  for (Value tile : outside)
    if (mlir::failed(materialisePlanned(tile, nullptr, nullptr)))
      return failure();
  return success();
}

/// Emits a region's block at the builder's insertion point. Buffers that it materialised are dropped afterwards.
LogicalResult KernelEmitter::emitRegion(Block &block, llvm::function_ref<LogicalResult(Operation *terminator)> finish) {
  auto before = buffers;
  int64_t mark = scratchBytes;
  LogicalResult result = emitBlock(block);
  if (succeeded(result))
    result = finish(block.getTerminator());
  buffers = std::move(before);
  scratchBytes = mark;
  return result;
}

/// Returns whether `value` reads a buffer of `targets` other than `own`, or reads `own` at an element other than the
/// one being written.
bool KernelEmitter::readsElsewhere(Value value, const Buffer &own, ArrayRef<Buffer> targets) {
  llvm::DenseSet<std::pair<Value, int>> seen;
  SmallVector<std::pair<Value, int>> work = {{value, 1}};
  while (!work.empty()) {
    auto [tile, identity] = work.pop_back_val();
    if (!isa<TensorType>(tile.getType()) || scalars.count(tile) || !seen.insert({tile, identity}).second)
      continue;
    if (auto buffer = buffers.find(tile); buffer != buffers.end()) {
      for (const Buffer &target : targets)
        if (target.pointer == buffer->second.pointer && (!identity || target.pointer != own.pointer))
          return true;
      continue;
    }
    Operation *op = tile.getDefiningOp();
    if (!op)
      continue;
    for (Value operand : op->getOperands())
      work.emplace_back(operand, identity && isElementwise(op));
  }
  return false;
}

/// Assigns targets[i] = values[i] as a parallel copy. Values that read other targets go through temporaries.
LogicalResult KernelEmitter::writeAll(ArrayRef<Value> values, ArrayRef<Buffer> targets,
                                      ArrayRef<SmallVector<Value>> ends) {
  auto endsOf = [&](size_t i) { return ends.empty() ? ArrayRef<Value>() : ArrayRef<Value>(ends[i]); };
  SmallVector<std::pair<size_t, Buffer>> late;
  for (Value value : values)
    if (mlir::failed(materialisePlanned(value, nullptr, nullptr)))
      return failure();
  auto inPlace = [&](size_t i) {
    auto buffer = buffers.find(values[i]);
    return buffer != buffers.end() && buffer->second.pointer == targets[i].pointer;
  };
  for (size_t i = 0; i < values.size(); ++i) {
    if (inPlace(i) || !readsElsewhere(values[i], targets[i], targets))
      continue;
    Buffer temporary = allocate(values[i].getType());
    if (mlir::failed(materialise(values[i], temporary, endsOf(i))))
      return failure();
    late.emplace_back(i, temporary);
  }
  for (size_t i = 0; i < values.size(); ++i) {
    bool isLate = llvm::any_of(late, [&](auto &entry) { return entry.first == i; });
    if (!inPlace(i) && !isLate && mlir::failed(materialise(values[i], targets[i], endsOf(i))))
      return failure();
  }
  for (auto &[i, temporary] : late) {
    buffers[values[i]] = temporary;
    if (mlir::failed(materialise(values[i], targets[i], endsOf(i))))
      return failure();
  }
  return success();
}

LogicalResult KernelEmitter::emitFor(scf::ForOp op) {
  if (mlir::failed(prepareRegions(op)))
    return failure();
  SmallVector<Value> inits, tiles;
  SmallVector<Buffer> carried;
  SmallVector<SmallVector<Value>> ends;
  for (auto [number, init] : llvm::enumerate(op.getInitArgs())) {
    if (staysScalar(init.getType())) {
      inits.push_back(scalarOf(init));
      continue;
    }
    tiles.push_back(init);
    ends.push_back(demandedEnds({op.getRegionIterArg(number), op.getResult(number)}));
    // A tile without other readers is carried in its own buffer, so that nested loops add to one accumulator.
    auto own = buffers.find(init);
    bool isLast =
        own != buffers.end() && own->second.clipped < 0 && init.hasOneUse() && init.getParentBlock() == op->getBlock();
    carried.push_back(isLast ? own->second : allocate(init.getType()));
  }
  if (mlir::failed(writeAll(tiles, carried, ends)))
    return failure();
  auto loop = scf::ForOp::create(builder, loc, scalars.at(op.getLowerBound()), scalars.at(op.getUpperBound()),
                                 scalars.at(op.getStep()), inits);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  scalars[op.getInductionVar()] = loop.getInductionVar();
  size_t scalar = 0, tile = 0;
  for (auto [argument, yielded] : llvm::zip(op.getRegionIterArgs(), op.getYieldedValues())) {
    if (staysScalar(argument.getType())) {
      scalars[argument] = loop.getRegionIterArgs()[scalar++];
      continue;
    }
    if (yielded.getDefiningOp<tile::DotOp>())
      preferred[yielded] = {argument, carried[tile]};
    buffers[argument] = carried[tile++];
  }
  LogicalResult body = emitRegion(*op.getBody(), [&](Operation *terminator) {
    SmallVector<Value> nextScalars, nextTiles;
    for (Value value : terminator->getOperands()) {
      if (!staysScalar(value.getType()))
        nextTiles.push_back(value);
      else
        nextScalars.push_back(scalarOf(value));
    }
    if (mlir::failed(writeAll(nextTiles, carried, ends)))
      return failure();
    if (!nextScalars.empty())
      scf::YieldOp::create(builder, loc, nextScalars);
    return success();
  });
  scalar = tile = 0;
  for (Value result : op.getResults()) {
    if (staysScalar(result.getType()))
      scalars[result] = loop.getResult(scalar++);
    else
      buffers[result] = carried[tile++];
  }
  return body;
}

/// Returns whether `tile`, which has a buffer, is dead after `op`. Other readers are only in branches that exclude
/// `op`.
bool KernelEmitter::diesIn(Value tile, scf::IfOp op) {
  auto found = buffers.find(tile);
  if (found == buffers.end() || found->second.clipped >= 0)
    return false;
  Operation *outermost = op;
  while (outermost->getBlock() != tile.getParentBlock())
    if (outermost = outermost->getParentOp(); !isa_and_present<scf::IfOp>(outermost))
      return false;
  return llvm::all_of(tile.getUsers(), [&](Operation *user) {
    Region *branch = nullptr;
    Operation *ancestor = op;
    while (!ancestor->isAncestor(user)) {
      if (ancestor == outermost)
        return false;
      branch = ancestor->getParentRegion();
      ancestor = ancestor->getParentOp();
    }
    return !branch || !branch->isAncestor(user->getParentRegion());
  });
}

LogicalResult KernelEmitter::emitIf(scf::IfOp op) {
  if (mlir::failed(prepareRegions(op)))
    return failure();
  SmallVector<Type> types;
  SmallVector<Buffer> results;
  SmallVector<SmallVector<Value>> ends;
  llvm::SmallDenseSet<Value> taken;
  for (auto [number, type] : llvm::enumerate(op.getResultTypes())) {
    if (staysScalar(type)) {
      types.push_back(registerType(getElementTypeOrSelf(type)));
      continue;
    }
    ends.push_back(demandedEnds(op.getResult(number)));
    // When a branch yields an existing tile that nothing else reads, the result reuses the buffer of that tile.
    Value same;
    SmallVector<std::pair<scf::IfOp, unsigned>> work = {{op, number}};
    while (!same && !work.empty()) {
      auto [branch, position] = work.pop_back_val();
      for (Value yielded : {branch.thenYield().getOperand(position), branch.elseYield().getOperand(position)}) {
        if (auto nested = yielded.getDefiningOp<scf::IfOp>(); nested && op->isProperAncestor(nested))
          work.emplace_back(nested, cast<OpResult>(yielded).getResultNumber());
        else if (!same && diesIn(yielded, op) && taken.insert(yielded).second)
          same = yielded;
      }
    }
    results.push_back(same ? buffers.at(same) : allocate(type));
  }
  bool hasElse = !op.getElseRegion().empty();
  auto branch = scf::IfOp::create(builder, loc, types, scalars.at(op.getCondition()), hasElse);
  OpBuilder::InsertionGuard guard(builder);
  auto finish = [&](Operation *terminator) {
    SmallVector<Value> scalarResults, tiles;
    for (Value value : terminator->getOperands()) {
      if (staysScalar(value.getType()))
        scalarResults.push_back(scalarOf(value));
      else
        tiles.push_back(value);
    }
    if (mlir::failed(writeAll(tiles, results, ends)))
      return failure();
    if (!types.empty())
      scf::YieldOp::create(builder, loc, scalarResults);
    return success();
  };
  builder.setInsertionPointToStart(branch.thenBlock());
  if (mlir::failed(emitRegion(*op.thenBlock(), finish)))
    return failure();
  if (hasElse) {
    builder.setInsertionPointToStart(branch.elseBlock());
    if (mlir::failed(emitRegion(*op.elseBlock(), finish)))
      return failure();
  }
  size_t scalar = 0, tile = 0;
  for (Value result : op.getResults()) {
    if (staysScalar(result.getType()))
      scalars[result] = branch.getResult(scalar++);
    else
      buffers[result] = results[tile++];
  }
  return success();
}

LogicalResult KernelEmitter::emitWhile(scf::WhileOp op) {
  if (mlir::failed(prepareRegions(op)))
    return failure();
  SmallVector<Value> inits, tiles;
  SmallVector<Buffer> before, after;
  SmallVector<Type> types;
  for (Value init : op.getInits()) {
    if (staysScalar(init.getType())) {
      inits.push_back(scalarOf(init));
      continue;
    }
    tiles.push_back(init);
    before.push_back(allocate(init.getType()));
  }
  for (Type type : op.getResultTypes()) {
    if (staysScalar(type))
      types.push_back(registerType(getElementTypeOrSelf(type)));
    else
      after.push_back(allocate(type));
  }
  if (mlir::failed(writeAll(tiles, before)))
    return failure();
  auto loop = scf::WhileOp::create(builder, loc, types, inits);
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Location> initLocs(inits.size(), loc), resultLocs(types.size(), loc);
  Block *beforeBlock = builder.createBlock(&loop.getBefore(), {}, TypeRange(ValueRange(inits)), initLocs);
  Block *afterBlock = builder.createBlock(&loop.getAfter(), {}, types, resultLocs);
  auto bind = [&](ValueRange arguments, Block *block, ArrayRef<Buffer> carried) {
    size_t scalar = 0, tile = 0;
    for (Value argument : arguments) {
      if (staysScalar(argument.getType()))
        scalars[argument] = block->getArgument(scalar++);
      else
        buffers[argument] = carried[tile++];
    }
  };
  auto finish = [&](ValueRange values, ArrayRef<Buffer> targets, SmallVectorImpl<Value> &scalarValues) {
    SmallVector<Value> tileValues;
    for (Value value : values) {
      if (staysScalar(value.getType()))
        scalarValues.push_back(scalarOf(value));
      else
        tileValues.push_back(value);
    }
    return writeAll(tileValues, targets);
  };
  builder.setInsertionPointToStart(beforeBlock);
  bind(op.getBeforeArguments(), beforeBlock, before);
  LogicalResult condition = emitRegion(*op.getBeforeBody(), [&](Operation *terminator) {
    auto conditionOp = cast<scf::ConditionOp>(terminator);
    SmallVector<Value> arguments;
    if (mlir::failed(finish(conditionOp.getArgs(), after, arguments)))
      return failure();
    scf::ConditionOp::create(builder, loc, scalars.at(conditionOp.getCondition()), arguments);
    return success();
  });
  if (mlir::failed(condition))
    return failure();
  builder.setInsertionPointToStart(afterBlock);
  bind(op.getAfterArguments(), afterBlock, after);
  LogicalResult body = emitRegion(*op.getAfterBody(), [&](Operation *terminator) {
    SmallVector<Value> next;
    if (mlir::failed(finish(terminator->getOperands(), before, next)))
      return failure();
    scf::YieldOp::create(builder, loc, next);
    return success();
  });
  size_t scalar = 0, tile = 0;
  for (Value result : op.getResults()) {
    if (staysScalar(result.getType()))
      scalars[result] = loop.getResult(scalar++);
    else
      buffers[result] = after[tile++];
  }
  return body;
}

} // namespace kpkg::lower::cpu
