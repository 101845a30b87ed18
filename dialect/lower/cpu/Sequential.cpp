// Emits tile ops that run element by element: arg_reduce, combine, scan, print, assert.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/lower/math/NarrowFloats.h"
#include "dialect/tile/ir/CheckedPrint.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }

/// Loops over all dimensions but `except`, and passes a position of scalars.
void KernelEmitter::forEachElement(ArrayRef<int64_t> shape, int except, llvm::function_ref<void(Position)> body) {
  Position position;
  position.index.assign(shape.size(), indexConstant(0));
  SmallVector<scf::ForOp> loops;
  for (int dim = 0, rank = shape.size(); dim < rank; ++dim) {
    if (dim == except || shape[dim] == 1)
      continue;
    loops.push_back(openLoop(indexConstant(0), indexConstant(shape[dim]), indexConstant(1)));
    position.index[dim] = loops.back().getInductionVar();
  }
  body(position);
  for (scf::ForOp loop : llvm::reverse(loops))
    closeLoop(loop);
}

/// Binds the arguments of a region of scalars and emits it in place.
LogicalResult KernelEmitter::inlineRegion(Region &region, ValueRange arguments, SmallVectorImpl<Value> &results) {
  for (auto [parameter, argument] : llvm::zip(region.getArguments(), arguments))
    scalars[parameter] = argument;
  for (Operation &op : region.front().without_terminator())
    if (mlir::failed(emitOp(op)))
      return failure();
  for (Value value : region.front().getTerminator()->getOperands())
    results.push_back(scalars.at(value));
  return success();
}

/// Computes one result for each outer position with `body`: SSA values for tiles of one element, else buffers.
LogicalResult
KernelEmitter::reduceSequentially(Operation *op, ArrayRef<int64_t> shape, int axis,
                                  llvm::function_ref<LogicalResult(Position, SmallVectorImpl<Value> &)> body) {
  for (Value operand : op->getOperands())
    if (mlir::failed(materialisePlanned(operand, nullptr, nullptr)))
      return failure();
  bool single = staysScalar(op->getResult(0).getType());
  SmallVector<Buffer> targets;
  if (!single)
    for (Value result : op->getResults())
      targets.push_back(allocate(result.getType()));
  openScope(nullptr);
  LogicalResult status = success();
  forEachElement(shape, axis, [&](Position position) {
    SmallVector<Value> values;
    status = body(position, values);
    if (mlir::failed(status))
      return;
    for (size_t i = 0; i < values.size(); ++i) {
      if (single)
        scalars[op->getResult(i)] = values[i];
      else
        writeBuffer(targets[i], position, values[i]);
    }
  });
  closeScope();
  for (size_t i = 0; i < targets.size(); ++i)
    buffers[op->getResult(i)] = targets[i];
  return failure(mlir::failed(status) || failed);
}

LogicalResult KernelEmitter::emitArgReduce(tile::ArgReduceOp op) {
  using K = tile::ArgReduceKind;
  int axis = op.getAxis();
  Type element = cast<RankedTensorType>(op.getValue().getType()).getElementType();
  return reduceSequentially(op, shapeOf(op.getValue()), axis, [&](Position position, SmallVectorImpl<Value> &results) {
    auto read = [&](Value index) {
      position.index[axis] = index;
      return toAccumulator(emit(op.getValue(), position), element);
    };
    Value zero = indexConstant(0), one = indexConstant(1);
    Value first = read(zero);
    scf::ForOp loop = openLoop(one, indexConstant(shapeOf(op.getValue())[axis]), one, {first, zero});
    Value best = loop.getRegionIterArgs()[0], at = loop.getRegionIterArgs()[1];
    Value value = read(loop.getInductionVar());
    Value better;
    if (isa<FloatType>(value.getType())) {
      auto predicate = op.getKind() == K::Max ? arith::CmpFPredicate::OGT : arith::CmpFPredicate::OLT;
      better = arith::CmpFOp::create(builder, loc, predicate, value, best);
      Value isNaN = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::UNO, value, value);
      Value bestIsNumber = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::ORD, best, best);
      better = arith::OrIOp::create(builder, loc, better, arith::AndIOp::create(builder, loc, isNaN, bestIsNumber));
    } else {
      using P = arith::CmpIPredicate;
      P predicate = op.getKind() == K::Max    ? P::sgt
                    : op.getKind() == K::Min  ? P::slt
                    : op.getKind() == K::UMax ? P::ugt
                                              : P::ult;
      better = compare(predicate, value, best);
    }
    Value nextBest = arith::SelectOp::create(builder, loc, better, value, best);
    Value nextAt = arith::SelectOp::create(builder, loc, better, loop.getInductionVar(), at);
    closeLoop(loop, {nextBest, nextAt});
    results.push_back(loop.getResult(1));
    return success();
  });
}

LogicalResult KernelEmitter::emitCombine(tile::CombineOp op) {
  int axis = op.getAxis();
  ArrayRef<int64_t> shape = shapeOf(op.getInputs().front());
  return reduceSequentially(op, shape, axis, [&](Position position, SmallVectorImpl<Value> &results) {
    SmallVector<Value> inits;
    for (Value init : op.getInits())
      inits.push_back(scalars.at(init));
    scf::ForOp loop = openLoop(indexConstant(0), indexConstant(shape[axis]), indexConstant(1), inits);
    position.index[axis] = loop.getInductionVar();
    SmallVector<Value> arguments(loop.getRegionIterArgs()), next;
    for (Value input : op.getInputs())
      arguments.push_back(emit(input, position));
    if (mlir::failed(inlineRegion(op.getBody(), arguments, next)))
      return failure();
    closeLoop(loop, next);
    llvm::append_range(results, loop.getResults());
    return success();
  });
}

LogicalResult KernelEmitter::emitScan(tile::ScanOp op) {
  int axis = op.getAxis();
  ArrayRef<int64_t> shape = shapeOf(op.getInputs().front());
  for (Value operand : op->getOperands())
    if (mlir::failed(materialisePlanned(operand, nullptr, nullptr)))
      return failure();
  SmallVector<Buffer> targets;
  for (Value result : op->getResults())
    targets.push_back(allocate(result.getType()));
  openScope(nullptr);
  LogicalResult status = success();
  forEachElement(shape, axis, [&](Position position) {
    Value zero = indexConstant(0), one = indexConstant(1);
    position.index[axis] = zero;
    SmallVector<Value> first;
    for (auto [input, target] : llvm::zip(op.getInputs(), targets)) {
      first.push_back(emit(input, position));
      writeBuffer(target, position, first.back());
    }
    scf::ForOp loop = openLoop(one, indexConstant(shape[axis]), one, first);
    position.index[axis] = loop.getInductionVar();
    SmallVector<Value> arguments(loop.getRegionIterArgs()), next;
    for (Value input : op.getInputs())
      arguments.push_back(emit(input, position));
    if (mlir::failed(inlineRegion(op.getBody(), arguments, next))) {
      status = failure();
      next.assign(loop.getRegionIterArgs().begin(), loop.getRegionIterArgs().end());
    }
    for (auto [value, target] : llvm::zip(next, targets))
      writeBuffer(target, position, value);
    closeLoop(loop, next);
  });
  closeScope();
  for (size_t i = 0; i < targets.size(); ++i)
    buffers[op->getResult(i)] = targets[i];
  return failure(mlir::failed(status) || failed);
}

LogicalResult KernelEmitter::emitAssert(tile::AssertOp op) {
  int32_t number = asserts.size() + 1;
  asserts.push_back(op.getMessageAttr());
  auto check = [&](Value condition) {
    // The first failure is kept.
    Type type = builder.getI32Type();
    Value old = LLVM::LoadOp::create(builder, loc, type, status);
    Value fresh = compare(arith::CmpIPredicate::eq, old, constant(builder.getI32IntegerAttr(0)));
    Value isFailure = arith::XOrIOp::create(builder, loc, condition, constant(builder.getBoolAttr(true)));
    Value record = arith::AndIOp::create(builder, loc, isFailure, fresh);
    Value next = arith::SelectOp::create(builder, loc, record, constant(builder.getI32IntegerAttr(number)), old);
    LLVM::StoreOp::create(builder, loc, next, status);
  };
  Value condition = op.getCondition();
  if (staysScalar(condition.getType())) {
    check(scalarOf(condition));
    return failure(failed);
  }
  if (mlir::failed(materialisePlanned(condition, nullptr, nullptr)))
    return failure();
  openScope(nullptr);
  forEachElement(shapeOf(condition), -1, [&](Position position) { check(emit(condition, position)); });
  closeScope();
  return failure(failed);
}

/// Returns the type in which the runtime reads a word. Other types are converted first.
static StringRef wordType(Type element) {
  if (element.isF64())
    return "{f64}";
  if (isa<FloatType>(element))
    return "{f32}";
  return element.isInteger(1) ? "{bool}" : "{i64}";
}

/// Stores a value to a word of `memory`, in the form that the runtime reads.
void KernelEmitter::putWord(Value value, Type element, Value memory, int64_t word) {
  Type i64 = builder.getI64Type();
  value = toAccumulator(value, element); // f32 for narrow floats.
  if (isa<FloatType>(value.getType()))
    value = make<arith::BitcastOp>(builder.getIntegerType(value.getType().getIntOrFloatBitWidth()), value);
  if (value.getType().isIndex())
    value = make<arith::IndexCastOp>(i64, value);
  else if (value.getType() != i64 && (isa<FloatType>(element) || element.isInteger(1)))
    value = make<arith::ExtUIOp>(i64, value);
  else if (value.getType() != i64)
    value = make<arith::ExtSIOp>(i64, value);
  LLVM::StoreOp::create(builder, loc, value, elementPointer(memory, i64, indexConstant(word)), 8);
}

/// Passes words in memory to the host, with the next format.
void KernelEmitter::callPrint(StringRef format, Value memory, int64_t words) {
  int32_t number = prints.size();
  prints.push_back(builder.getStringAttr(format));
  auto pointerType = LLVM::LLVMPointerType::get(builder.getContext());
  Type i32 = builder.getI32Type();
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(builder.getContext()), {pointerType, i32, pointerType, i32});
  Value count = constant(builder.getI32IntegerAttr(words)), index = constant(builder.getI32IntegerAttr(number));
  LLVM::CallOp::create(builder, loc, type, ValueRange{printFunction, printContext, index, memory, count});
}

/// Emits a search for the first element whose condition does not hold. It prints the values there, unless the launch
/// has failed before.
LogicalResult KernelEmitter::emitCheckedPrint(tile::PrintOp op) {
  asserts.push_back(tile::checkOf(op));
  int32_t number = asserts.size();
  std::string format;
  StringRef rest = tile::checkFormat(op);
  for (Value value : op.getValues().drop_front()) {
    auto [before, after] = rest.split("{}");
    rest = after;
    format += (before + wordType(getElementTypeOrSelf(value.getType()))).str();
  }
  format += rest;
  Value condition = op.getValues().front(), memory = allocateBytes(8 * int64_t(op.getValues().size()));
  auto check = [&](const Position &position) {
    SmallVector<Value> values; // Before the branch, so that later uses of them are valid.
    for (Value value : op.getValues())
      values.push_back(staysScalar(value.getType()) ? scalarOf(value) : emit(value, position));
    Type i32 = builder.getI32Type();
    Value old = LLVM::LoadOp::create(builder, loc, i32, status);
    Value fresh = compare(arith::CmpIPredicate::eq, old, constant(builder.getI32IntegerAttr(0)));
    Value isFailure = arith::XOrIOp::create(builder, loc, values.front(), constant(builder.getBoolAttr(true)));
    Value isFirst = arith::AndIOp::create(builder, loc, isFailure, fresh);
    auto branch = scf::IfOp::create(builder, loc, isFirst, /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value code = LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(number));
    LLVM::StoreOp::create(builder, loc, code, status);
    for (auto [word, value] : llvm::enumerate(llvm::drop_begin(values)))
      putWord(value, getElementTypeOrSelf(op.getValues()[word + 1].getType()), memory, word);
    callPrint(format, memory, values.size() - 1);
  };
  if (staysScalar(condition.getType())) {
    check(Position());
    return failure(failed);
  }
  for (Value value : op.getValues())
    if (!staysScalar(value.getType()) && mlir::failed(materialisePlanned(value, nullptr, nullptr)))
      return failure();
  openScope(nullptr);
  forEachElement(shapeOf(condition), -1, check);
  closeScope();
  return failure(failed);
}

/// Emits one call of the host's function with the values as 64-bit words. Of tiles it passes the first elements,
/// row-major.
LogicalResult KernelEmitter::emitPrint(tile::PrintOp op) {
  if (tile::checkOf(op))
    return emitCheckedPrint(op);
  constexpr int64_t most = 64; // Words in a call.
  std::string format;
  StringRef rest = op.getFormat();
  Value memory = allocateBytes(most * 8);
  int64_t word = 0;
  for (Value value : op.getValues()) {
    Type element = getElementTypeOrSelf(value.getType());
    auto [before, after] = rest.split("{}");
    rest = after;
    format += before;
    if (staysScalar(value.getType())) {
      if (word < most) {
        format += wordType(element);
        putWord(scalarOf(value), element, memory, word++);
      } else {
        format += "...";
      }
      continue;
    }
    FailureOr<Buffer> buffer = bufferOf(value);
    if (mlir::failed(buffer))
      return failure();
    ArrayRef<int64_t> shape = shapeOf(value);
    int64_t count = cast<RankedTensorType>(value.getType()).getNumElements(), shown = std::min(count, most - word);
    format += "[";
    for (int64_t number = 0; number < shown; ++number) {
      Position position;
      position.index.resize(shape.size());
      int64_t linear = number;
      for (int dim = shape.size(); dim-- > 0; linear /= shape[dim])
        position.index[dim] = indexConstant(linear % shape[dim]);
      format += number ? " " : "";
      format += wordType(element);
      putWord(readBuffer(value, *buffer, position), element, memory, word++);
    }
    format += shown < count ? " ...]" : "]";
  }
  format += rest;
  callPrint(format, memory, word);
  return failure(failed);
}

} // namespace kpkg::lower::cpu
