// Emits the ops of threads: ids, shared memory, barriers, and the exchange of values through memory of the warp.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static constexpr int64_t kLanes = 32;

LogicalResult KernelEmitter::emitThreadOp(Operation &op) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(&op)
      .Case([&](tile::ThreadIdOp id) {
        scalars[id.getResult()] = threads.id;
        return success();
      })
      .Case([&](tile::ClusterRankOp rank) {
        scalars[rank.getResult()] = threads.rank;
        return success();
      })
      .Case([&](tile::SharedOfRankOp other) {
        View view = views.at(other.getView());
        Value distance = mul(sub(scalars.at(other.getRank()), threads.rank), indexConstant(threads.sharedBytes));
        view.pointer = elementPointer(view.pointer, builder.getI8Type(), distance);
        views[other.getResult()] = view;
        return success();
      })
      .Case([&](tile::BarrierOp barrier) {
        bool isOfBlock = barrier.getScope() == tile::ThreadScope::Cluster && threads.cluster == 1;
        suspend(barrier, isOfBlock ? tile::ThreadScope::Block : barrier.getScope());
        return success();
      })
      .Case([&](tile::ShuffleOp shuffle) { return emitShuffle(shuffle); })
      .Case([&](tile::VoteOp vote) { return emitVote(vote); })
      .Case([&](tile::AtomicElementOp update) { return emitAtomicElement(update); })
      .Case([&](tile::CopyAsyncOp copy) { return emitCopyAsync(copy); })
      .Case<tile::CopyCommitOp, tile::CopyWaitOp>([](auto) { return success(); }) // copies are complete at once
      .Case([&](tile::ThreadMmaOp product) { return emitThreadMma(product); })
      .Default([&](Operation *other) { return error(other, "op is not supported on the CPU"); });
}

/// Returns the shared memory of this thread's block.
View KernelEmitter::sharedMemoryOf(tile::ScratchOp op) {
  View view;
  view.element = op.getType().getElementType();
  view.unit = op.getType().getUnit();
  Value start = scratchAt(threads.shared + threads.sharedOffsets.at(op));
  view.pointer = threads.cluster == 1 ? start
                                      : elementPointer(start, builder.getI8Type(),
                                                       mul(threads.rank, indexConstant(threads.sharedBytes)));
  for (auto [dim, extent] : llvm::enumerate(op.getShape())) {
    view.shape.push_back(indexConstant(extent));
    view.stride.push_back(indexConstant(op.getStride(int64_t(dim))));
  }
  return view;
}

Value KernelEmitter::laneOfThread() { return make<arith::AndIOp>(threads.number, indexConstant(kLanes - 1)); }

/// Puts words (i64) where the other lanes find them, waits for the warp, and returns the memory of its first lane. The
/// next exchange uses other memory, because a lane may come to it before others have read from this one.
Value KernelEmitter::exchange(Operation *op, ArrayRef<Value> words) {
  Value one = indexConstant(1), lanes = indexConstant(kLanes);
  Value warp = make<arith::DivUIOp>(threads.number, lanes);
  Value phaseAt = wordAt(scratchAt(threads.phases), warp, 8);
  Value phase = LLVM::LoadOp::create(builder, loc, builder.getI64Type(), phaseAt, 8);
  phase = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), phase);
  Value half = mul(make<arith::AndIOp>(phase, one), indexConstant(threads.count * threads.cluster));
  Value first = mul(add(half, mul(warp, lanes)), indexConstant(threads.slotWords));
  Value base = wordAt(scratchAt(threads.slots), first, 8);
  Value own = wordAt(base, mul(laneOfThread(), indexConstant(threads.slotWords)), 8);
  for (auto [number, word] : llvm::enumerate(words))
    LLVM::StoreOp::create(builder, loc, word, wordAt(own, indexConstant(int64_t(number)), 8), 8);
  suspend(op, tile::ThreadScope::Warp);
  return base;
}

/// Reads word `number` of a lane.
Value KernelEmitter::wordOfLane(Value base, Value lane, int64_t number) {
  Value at = wordAt(base, add(mul(lane, indexConstant(threads.slotWords)), indexConstant(number)), 8);
  return LLVM::LoadOp::create(builder, loc, builder.getI64Type(), at, 8);
}

Value KernelEmitter::toWord(Value value, Type element) {
  value = toMemory(value, element);
  unsigned bits = unsigned(8 * memoryBytes(element));
  if (isa<FloatType>(value.getType()))
    value = arith::BitcastOp::create(builder, loc, builder.getIntegerType(bits), value);
  return bits == 64 ? value : arith::ExtUIOp::create(builder, loc, builder.getI64Type(), value).getResult();
}

Value KernelEmitter::fromWord(Value word, Type element) {
  unsigned bits = unsigned(8 * memoryBytes(element));
  if (bits < 64)
    word = arith::TruncIOp::create(builder, loc, builder.getIntegerType(bits), word);
  Type inMemory = memoryType(element);
  if (isa<FloatType>(inMemory))
    word = arith::BitcastOp::create(builder, loc, inMemory, word);
  return fromMemory(word, element);
}

LogicalResult KernelEmitter::emitShuffle(tile::ShuffleOp op) {
  Type element = op.getValue().getType();
  Value base = exchange(op, toWord(scalars.at(op.getValue()), element));
  Value by = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), scalars.at(op.getBy()));
  Value lane = laneOfThread(), last = indexConstant(kLanes - 1), source;
  switch (op.getKind()) {
  case tile::ShuffleKind::Idx:
    source = make<arith::AndIOp>(by, last);
    break;
  case tile::ShuffleKind::Xor:
    source = make<arith::XOrIOp>(lane, make<arith::AndIOp>(by, last));
    break;
  case tile::ShuffleKind::Up:
    source = choose(compare(arith::CmpIPredicate::ule, by, lane), sub(lane, by), lane);
    break;
  case tile::ShuffleKind::Down:
    source = choose(compare(arith::CmpIPredicate::ule, by, sub(last, lane)), add(lane, by), lane);
    break;
  }
  scalars[op.getResult()] = fromWord(wordOfLane(base, source, 0), element);
  return success();
}

LogicalResult KernelEmitter::emitVote(tile::VoteOp op) {
  Type i64 = builder.getI64Type(), i32 = builder.getI32Type();
  Value base = exchange(op, arith::ExtUIOp::create(builder, loc, i64, scalars.at(op.getCondition())).getResult());
  Value none = constant(builder.getI64IntegerAttr(0));
  auto loop = scf::ForOp::create(builder, loc, indexConstant(0), indexConstant(kLanes), indexConstant(1), none);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value lane = loop.getInductionVar();
    Value bit = arith::ShLIOp::create(builder, loc, wordOfLane(base, lane, 0),
                                      arith::IndexCastOp::create(builder, loc, i64, lane));
    scf::YieldOp::create(builder, loc, arith::OrIOp::create(builder, loc, loop.getRegionIterArg(0), bit).getResult());
  }
  Value mask = loop.getResult(0), all = constant(builder.getI64IntegerAttr((int64_t(1) << kLanes) - 1));
  scalars[op.getResult()] = op.getKind() == tile::VoteKind::Ballot
                                ? arith::TruncIOp::create(builder, loc, i32, mask).getResult()
                            : op.getKind() == tile::VoteKind::Any ? compare(arith::CmpIPredicate::ne, mask, none)
                                                                  : compare(arith::CmpIPredicate::eq, mask, all);
  return success();
}

LogicalResult KernelEmitter::emitAtomicElement(tile::AtomicElementOp op) {
  const View view = views.at(op.getView());
  Value pointer =
      view.valid ? LLVM::SelectOp::create(builder, loc, view.valid, view.pointer, dummy).getResult() : view.pointer;
  Update update{op.getKind(), view.element, scalars.at(op.getValue()),
                op.getExpected() ? scalars.at(op.getExpected()) : Value(),
                !isa<BlockArgument>(tile::argumentOf(op.getView()))};
  Value old = updateElement(update, pointer);
  if (!op.getOld())
    return success();
  old = fromMemory(old, view.element);
  if (view.valid)
    old = arith::SelectOp::create(builder, loc, view.valid, old, constant(builder.getZeroAttr(old.getType())));
  scalars[op.getOld()] = old;
  return success();
}

LogicalResult KernelEmitter::emitCopyAsync(tile::CopyAsyncOp op) {
  auto elementOf = [&](Value whole, OperandRange coordinates, int64_t step) {
    const View view = views.at(whole);
    Value valid = view.valid, pointer = view.pointer;
    for (auto [dim, coordinate] : llvm::enumerate(coordinates)) {
      Value at = scalars.at(coordinate);
      if (dim + 1 == coordinates.size())
        at = add(at, indexConstant(step));
      valid = both(valid, compare(arith::CmpIPredicate::ult, at, view.shape[dim]));
      pointer = elementPointer(pointer, view.element, mul(at, view.stride[dim]));
    }
    return std::pair(pointer, valid);
  };
  Type element = views.at(op.getSource()).element;
  Value zero = constant(builder.getZeroAttr(registerType(element)));
  for (int64_t step = 0; step < int64_t(op.getCount()); ++step) {
    auto [from, exists] = elementOf(op.getSource(), op.getFrom(), step);
    auto [to, fits] = elementOf(op.getTarget(), op.getTo(), step);
    Value value = loadScalarChecked(from, exists, zero, element);
    storeElements(value, LLVM::SelectOp::create(builder, loc, fits, to, dummy), element);
  }
  return success();
}

/// Rounds an f32 to the 10 mantissa bits that tensor cores read, halves away from zero. Infinities and NaN stay.
static Value roundToTf32(OpBuilder &builder, Location loc, Value value) {
  Type i32 = builder.getI32Type();
  auto number = [&](uint32_t bits) -> Value {
    return arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int32_t(bits)));
  };
  Value bits = arith::BitcastOp::create(builder, loc, i32, value);
  Value rounded = arith::AndIOp::create(builder, loc, arith::AddIOp::create(builder, loc, bits, number(0x1000)),
                                        number(0xffffe000));
  Value exponent = arith::AndIOp::create(builder, loc, bits, number(0x7f800000));
  Value isFinite = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, exponent, number(0x7f800000));
  rounded = arith::BitcastOp::create(builder, loc, value.getType(), rounded);
  return arith::SelectOp::create(builder, loc, isFinite, rounded, value);
}

/// Multiplies fragments in the order of mma.sync. Lane 4 g + t has the results of rows g and g + 8, columns 2 t and
/// 2 t + 1.
LogicalResult KernelEmitter::emitThreadMma(tile::ThreadMmaOp op) {
  Type element = op.getA().front().getType(), f32 = builder.getF32Type();
  bool isTf32 = element.isF32();
  SmallVector<Value> words;
  for (OperandRange part : {op.getA(), op.getB()})
    for (Value value : part) {
      Value wide = toAccumulator(scalars.at(value), element);
      words.push_back(toWord(isTf32 ? roundToTf32(builder, loc, wide) : wide, f32));
    }
  Value base = exchange(op, words);
  Value lane = laneOfThread(), four = indexConstant(4);
  Value row = mul(make<arith::DivUIOp>(lane, four), four); // its first lane
  Value column = mul(make<arith::RemUIOp>(lane, four), indexConstant(8));
  int64_t depth = isTf32 ? 8 : 16, left = int64_t(op.getA().size());
  SmallVector<Value> sums;
  for (Value sum : op.getC())
    sums.push_back(scalars.at(sum));
  for (int64_t k = 0; k < depth; ++k) {
    // Four lanes hold a row of the left operand, and a column of the right one.
    Value holder = indexConstant(isTf32 ? k % 4 : k % 8 / 2);
    int64_t inWord = isTf32 ? 0 : k & 1;
    bool isUpper = k >= depth / 2;
    Value a[2], b[2];
    for (int64_t half = 0; half < 2; ++half) {
      int64_t ofA = isTf32 ? half + 2 * isUpper : inWord + 2 * half + 4 * isUpper;
      int64_t ofB = isTf32 ? isUpper : inWord + 2 * isUpper;
      a[half] = fromWord(wordOfLane(base, add(row, holder), ofA), f32);
      b[half] = fromWord(wordOfLane(base, add(add(column, indexConstant(4 * half)), holder), left + ofB), f32);
    }
    for (int64_t i = 0; i < 4; ++i) {
      Value product = arith::MulFOp::create(builder, loc, a[i / 2], b[i % 2]);
      sums[size_t(i)] = arith::AddFOp::create(builder, loc, sums[size_t(i)], product);
    }
  }
  for (auto [result, sum] : llvm::zip(op.getSums(), sums))
    scalars[result] = sum;
  return success();
}

} // namespace kpkg::lower::cpu
