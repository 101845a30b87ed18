// Emits loops and branches, with tiles flattened into the registers of one thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/Words.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

/// Returns how many elements of a tile share a 32-bit register while a loop or branch carries them.
static unsigned elementsOfWord(Type type) {
  auto tile = dyn_cast<RankedTensorType>(type);
  unsigned registers = tile ? kgpu::layoutOf(type).registers() : 1;
  unsigned bytes = tile ? bytesOf(tile.getElementType()) : 4;
  return bytes < 4 && registers % (4 / bytes) == 0 ? 4 / bytes : 1;
}

Emitter::TileRegisters Emitter::flatten(ValueRange values) {
  TileRegisters flat;
  for (Value value : values) {
    if (elementsOfWord(value.getType()) > 1)
      llvm::append_range(flat, packWords(builder, registersOf(value)));
    else
      llvm::append_range(flat, registersOf(value));
  }
  return flat;
}

void Emitter::defineFrom(ValueRange values, ValueRange flat) {
  for (Value value : values) {
    unsigned count = isa<RankedTensorType>(value.getType()) ? kgpu::layoutOf(value).registers() : 1;
    unsigned shared = elementsOfWord(value.getType());
    ValueRange words = flat.take_front(count / shared);
    define(value, shared > 1 ? unpackWords(builder, words, getElementTypeOrSelf(value.getType()), count)
                             : TileRegisters(words));
    flat = flat.drop_front(count / shared);
  }
}

LogicalResult Emitter::emitInto(Block &from, Block *to) {
  builder.setInsertionPointToEnd(to);
  return emitBlock(from);
}

/// Returns the scalars of `loop`'s block that are defined before the loop and used after it. They depend only on the
/// block's arguments and on values defined outside.
static SetVector<Operation *> scalarsAcross(scf::ForOp loop) {
  SetVector<Operation *> wanted;
  Block *block = loop->getBlock();
  auto isScalar = [](Operation *op) {
    return op->getNumRegions() == 0 && isMemoryEffectFree(op) && isa<arith::ArithDialect>(op->getDialect()) &&
           llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>) &&
           llvm::none_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>);
  };
  for (Operation &op : llvm::reverse(llvm::make_range(block->begin(), loop->getIterator()))) {
    bool isNeeded = llvm::any_of(op.getUsers(), [&](Operation *user) {
      Operation *here = block->findAncestorOpInBlock(*user);
      return here && (loop->isBeforeInBlock(here) || wanted.contains(here));
    });
    if (isNeeded && isScalar(&op))
      wanted.insert(&op);
  }
  return wanted;
}

static bool hasProducts(scf::ForOp loop) {
  return loop.walk([](kgpu::WgmmaOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Returns whether a product of the same block precedes the loop. It hides the time to compute scalars
/// (kgpu-sink-scalars), which nothing would hide after the loop.
static bool followsProduct(scf::ForOp loop) {
  return llvm::any_of(loop->getBlock()->getOps<kgpu::WgmmaOp>(),
                      [&](kgpu::WgmmaOp product) { return product->isBeforeInBlock(loop); });
}

/// Returns whether another loop with products follows this one, such as a peeled loop. Both loops then have the same
/// register pressure.
static bool comesBeforeOther(scf::ForOp loop) {
  return llvm::any_of(loop->getBlock()->getOps<scf::ForOp>(),
                      [&](scf::ForOp other) { return loop->isBeforeInBlock(other) && hasProducts(other); });
}

LogicalResult Emitter::emitFor(scf::ForOp op) {
  auto loop = scf::ForOp::create(builder, scalar(op.getLowerBound()), scalar(op.getUpperBound()), scalar(op.getStep()),
                                 flatten(op.getInitArgs()));
  Block *body = loop.getBody();
  if (!body->empty()) // A terminator without values.
    body->back().erase();
  define(op.getInductionVar(), {loop.getInductionVar()});
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(body);
    defineFrom(op.getRegionIterArgs(), loop.getRegionIterArgs());
    if (failed(emitInto(*op.getBody(), body)))
      return failure();
    scf::YieldOp::create(builder, flatten(op.getBody()->getTerminator()->getOperands()));
  }
  defineFrom(op.getResults(), loop.getResults());
  // If the loop's products leave few registers, scalars that live across it are rematerialised after it. They are
  // recomputed from an opaque copy of the outer loop's counter, which takes hundreds of cycles.
  Block *around = op->getBlock();
  if (!isa<scf::ForOp, scf::WhileOp>(around->getParentOp()) || !warpgroup || !hasProducts(op) || followsProduct(op) ||
      (launch.peels && comesBeforeOther(op)))
    return success();
  Value counted = around->getArgument(0), number = scalar(counted),
        word = arith::IndexCastOp::create(builder, builder.getI64Type(), number);
  define(counted, {arith::IndexCastOp::create(builder, number.getType(), ptx::hidden(builder, word)).getResult()});
  SetVector<Operation *> scalars = scalarsAcross(op);
  for (Operation *scalarOp : llvm::reverse(scalars))
    if (failed(emit(scalarOp)))
      return failure();
  return success();
}

LogicalResult Emitter::emitIf(scf::IfOp op) {
  // The result types are known only after a branch is emitted, so branches are emitted into blocks that the new op then
  // takes.
  OpBuilder::InsertionGuard guard(builder);
  auto emitBranch = [&](Region &from, Region &to) -> LogicalResult {
    Block *block = builder.createBlock(&to);
    if (from.empty()) {
      scf::YieldOp::create(builder);
      return success();
    }
    if (failed(emitInto(from.front(), block)))
      return failure();
    scf::YieldOp::create(builder, flatten(from.front().getTerminator()->getOperands()));
    return success();
  };
  OpBuilder::InsertPoint here = builder.saveInsertionPoint();
  OperationState state(builder.getLoc(), scf::IfOp::getOperationName());
  state.addOperands(scalar(op.getCondition()));
  Region *thenRegion = state.addRegion(), *elseRegion = state.addRegion();
  if (failed(emitBranch(op.getThenRegion(), *thenRegion)))
    return failure();
  state.addTypes(thenRegion->front().getTerminator()->getOperandTypes());
  if (!op.getElseRegion().empty() && failed(emitBranch(op.getElseRegion(), *elseRegion)))
    return failure();
  builder.restoreInsertionPoint(here);
  defineFrom(op.getResults(), builder.create(state)->getResults());
  return success();
}

LogicalResult Emitter::emitWhile(scf::WhileOp op) {
  OpBuilder::InsertionGuard guard(builder);
  OpBuilder::InsertPoint here = builder.saveInsertionPoint();
  OperationState state(builder.getLoc(), scf::WhileOp::getOperationName());
  TileRegisters inits = flatten(op.getInits());
  state.addOperands(inits);
  Region *before = state.addRegion(), *after = state.addRegion();
  SmallVector<Location> locations(inits.size(), builder.getLoc());
  Block *test = builder.createBlock(before, {}, ValueRange(inits).getTypes(), locations);
  defineFrom(op.getBeforeArguments(), test->getArguments());
  if (failed(emitInto(*op.getBeforeBody(), test)))
    return failure();
  scf::ConditionOp condition = op.getConditionOp();
  TileRegisters passed = flatten(condition.getArgs());
  scf::ConditionOp::create(builder, scalar(condition.getCondition()), passed);
  Block *body = builder.createBlock(after, {}, ValueRange(passed).getTypes(),
                                    SmallVector<Location>(passed.size(), builder.getLoc()));
  defineFrom(op.getAfterArguments(), body->getArguments());
  if (failed(emitInto(*op.getAfterBody(), body)))
    return failure();
  scf::YieldOp::create(builder, flatten(op.getAfterBody()->getTerminator()->getOperands()));
  state.addTypes(ValueRange(passed).getTypes());
  builder.restoreInsertionPoint(here);
  defineFrom(op.getResults(), builder.create(state)->getResults());
  return success();
}

} // namespace kpkg::lower::nvvm
