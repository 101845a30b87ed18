// Emits the ops of kernels at thread level.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/Words.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

static constexpr unsigned genericSpace = 0;

bool Emitter::isGeneric(Value pointer) {
  return cast<LLVM::LLVMPointerType>(pointer.getType()).getAddressSpace() == genericSpace;
}

LogicalResult Emitter::emitThreadOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](tile::ThreadIdOp id) { return emitAs(id, {asIndex(place.thread())}); })
      .Case([&](tile::ClusterRankOp rank) {
        Value number = launch.cluster > 1 ? ctaOfCluster(builder) : constantOf(builder, 0);
        return emitAs(rank, {asIndex(number)});
      })
      .Case([&](tile::SharedOfRankOp memory) { return emitSharedOfRank(memory); })
      .Case([&](tile::BarrierOp barrier) {
        emitThreadBarrier(barrier.getScope());
        return success();
      })
      .Case([&](tile::ShuffleOp shuffle) { return emitShuffle(shuffle); })
      .Case([&](tile::VoteOp vote) { return emitVote(vote); })
      .Case([&](tile::AtomicElementOp update) { return emitAtomicElement(update); })
      .Case([&](tile::CopyAsyncOp copy) { return emitCopyAsync(copy); })
      .Case([&](tile::CopyCommitOp) {
        commitAsyncCopies(builder);
        return success();
      })
      .Case([&](tile::CopyWaitOp wait) {
        waitForAsyncCopies(builder, unsigned(wait.getPending()));
        return success();
      })
      .Case([&](tile::ThreadMmaOp product) { return emitThreadMma(product); })
      .Default([](Operation *other) { return other->emitOpError("is not supported on GPUs yet"); });
}

void Emitter::emitThreadBarrier(tile::ThreadScope scope) {
  switch (scope) {
  case tile::ThreadScope::Warp:
    return warpBarrier(builder);
  case tile::ThreadScope::Cluster:
    if (launch.cluster > 1)
      return clusterBarrier(builder, /*isRelaxed=*/false);
    [[fallthrough]]; // a cluster of one block
  case tile::ThreadScope::Block:
    return ctaBarrier(builder);
  }
}

LogicalResult Emitter::emitSharedOfRank(tile::SharedOfRankOp op) {
  View part = view(op.getView());
  if (launch.cluster > 1) {
    // Generic addresses serve loads, stores and updates alike.
    Type remote = LLVM::LLVMPointerType::get(builder.getContext(), 7);
    Value rank = arith::IndexCastOp::create(builder, builder.getI32Type(), scalar(op.getRank()));
    Value address = NVVM::MapaOp::create(builder, remote, part.pointer, rank);
    part.pointer =
        LLVM::AddrSpaceCastOp::create(builder, LLVM::LLVMPointerType::get(builder.getContext(), genericSpace), address);
  }
  views[op.getResult()] = part;
  return success();
}

/// Loads an element of another block's shared memory.
LogicalResult Emitter::emitGenericLoad(tile::LoadOp op, Value fill) {
  const View &part = view(op.getView());
  unsigned bytes = part.type.getElementBytes();
  Type element = part.type.getElementType();
  auto branch = scf::IfOp::create(builder, element, hasElement(part), /*addElse=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value bits = LLVM::LoadOp::create(builder, builder.getIntegerType(8 * bytes), part.pointer, bytes);
    scf::YieldOp::create(builder, elementOfBits(builder, bits, element));
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, fill);
  }
  return emitAs(op, {branch.getResult(0)});
}

/// Stores an element to another block's shared memory.
LogicalResult Emitter::emitGenericStore(tile::StoreOp op, Value mask) {
  const View &part = view(op.getView());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(scf::IfOp::create(builder, mask, /*withElseRegion=*/false).thenBlock());
  LLVM::StoreOp::create(builder, bitsOfElement(builder, scalar(op.getValue())), part.pointer,
                        part.type.getElementBytes());
  return success();
}

LogicalResult Emitter::emitShuffle(tile::ShuffleOp op) {
  Type element = op.getValue().getType();
  NVVM::ShflKind kind = op.getKind() == tile::ShuffleKind::Idx    ? NVVM::ShflKind::idx
                        : op.getKind() == tile::ShuffleKind::Up   ? NVVM::ShflKind::up
                        : op.getKind() == tile::ShuffleKind::Down ? NVVM::ShflKind::down
                                                                  : NVVM::ShflKind::bfly;
  // The instruction reads five bits of a distance, so that larger ones would wrap around.
  Value by = scalar(op.getBy()), isFar;
  if (op.getKind() == tile::ShuffleKind::Up || op.getKind() == tile::ShuffleKind::Down)
    isFar = arith::CmpIOp::create(builder, arith::CmpIPredicate::ugt, by, constantOf(builder, 31));
  Value clamp = constantOf(builder, kind == NVVM::ShflKind::up ? 0 : 31);
  SmallVector<Value> words = packWords(builder, registersOf(op.getValue()));
  for (Value &word : words) {
    Value own = word;
    word =
        NVVM::ShflOp::create(builder, builder.getI32Type(), constantOf(builder, -1), own, by, clamp, kind, UnitAttr());
    if (isFar)
      word = arith::SelectOp::create(builder, isFar, own, word);
  }
  return emitAs(op, TileRegisters(unpackWords(builder, words, element, 1)));
}

LogicalResult Emitter::emitVote(tile::VoteOp op) {
  NVVM::VoteSyncKind kind = op.getKind() == tile::VoteKind::Ballot ? NVVM::VoteSyncKind::ballot
                            : op.getKind() == tile::VoteKind::Any  ? NVVM::VoteSyncKind::any
                                                                   : NVVM::VoteSyncKind::all;
  Type type = op.getResult().getType();
  return emitAs(
      op,
      {NVVM::VoteSyncOp::create(builder, type, constantOf(builder, -1), scalar(op.getCondition()), kind).getResult()});
}

LogicalResult Emitter::emitAtomicElement(tile::AtomicElementOp op) {
  const View &part = view(op.getView());
  Type element = part.type.getElementType();
  bool hasOld = op.getOld() && !op.getOld().use_empty();
  Update update{op.getKind(), element, scalar(op.getValue()), op.getExpected() ? scalar(op.getExpected()) : Value(),
                hasOld};
  Value zero = hasOld ? arith::ConstantOp::create(builder, builder.getZeroAttr(element)).getResult() : Value();
  auto branch =
      scf::IfOp::create(builder, hasOld ? TypeRange(element) : TypeRange(), hasElement(part), /*addElse=*/hasOld);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  Value found = updateElement(update, part.pointer);
  if (!hasOld)
    return success();
  scf::YieldOp::create(builder, found);
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, zero);
  return emitAs(op.getOld(), {branch.getResult(0)});
}

/// Copies by cp.async where all elements exist, adjacent and aligned on both sides. Elsewhere the thread loads and
/// stores them one by one.
LogicalResult Emitter::emitCopyAsync(tile::CopyAsyncOp op) {
  const View &source = view(op.getSource()), &target = view(op.getTarget());
  unsigned bytes = source.type.getElementBytes();
  int64_t count = int64_t(op.getCount());
  Type i64 = builder.getI64Type();
  auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(builder, value).getResult(); };
  auto both = [&](Value a, Value b) { return a && b ? arith::AndIOp::create(builder, a, b).getResult() : a ? a : b; };
  /// Returns the address of element `step` of a side, and whether it exists.
  auto elementOf = [&](const View &part, OperandRange coordinates, int64_t step) -> std::pair<Value, Value> {
    Value offset, inside = part.valid;
    for (auto [dim, coordinate] : llvm::enumerate(coordinates)) {
      Value at = scalar(coordinate);
      if (step && dim + 1 == coordinates.size())
        at = arith::AddIOp::create(builder, at, number(step));
      inside = both(inside, arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, at, part.shape[dim]));
      Value distance = arith::MulIOp::create(builder, at, part.stride[dim]);
      offset = offset ? arith::AddIOp::create(builder, offset, distance).getResult() : distance;
    }
    Value words = arith::IndexCastOp::create(builder, i64, offset);
    return {LLVM::GEPOp::create(builder, part.pointer.getType(), builder.getIntegerType(8 * bytes), part.pointer,
                                ValueRange{words}),
            inside};
  };
  auto [from, fromFirst] = elementOf(source, op.getFrom(), 0);
  auto [to, toFirst] = elementOf(target, op.getTo(), 0);
  Value isWhole = both(both(fromFirst, toFirst), both(elementOf(source, op.getFrom(), count - 1).second,
                                                      elementOf(target, op.getTo(), count - 1).second));
  int64_t total = count * bytes;
  for (auto [part, address] : {std::pair(source, from), std::pair(target, to)}) {
    Value stride = part.stride.back();
    if (count > 1 && part.type.getUnit() != part.type.getRank() - 1)
      isWhole = both(isWhole, arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, stride, number(1)));
    Value word = LLVM::PtrToIntOp::create(builder, i64, address);
    Value low = arith::AndIOp::create(builder, word, arith::ConstantIntOp::create(builder, i64, total - 1));
    Value zero = arith::ConstantIntOp::create(builder, i64, 0);
    if (total > bytes)
      isWhole = both(isWhole, arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, low, zero));
  }
  auto branch = scf::IfOp::create(builder, isWhole, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  asyncCopy(builder, to, from, unsigned(total), /*mask=*/Value());
  builder.setInsertionPointToStart(branch.elseBlock());
  Type word = builder.getIntegerType(std::max(8 * bytes, 16u));
  Value zero = arith::ConstantOp::create(builder, builder.getIntegerAttr(word, 0));
  for (int64_t step = 0; step < count; ++step) {
    auto [read, exists] = elementOf(source, op.getFrom(), step);
    auto [written, fits] = elementOf(target, op.getTo(), step);
    Value value = ptx::viewLoad(builder, read, exists, bytes, 1, zero, isNeverWritten(source)).front();
    ptx::viewStore(builder, written, fits, bytes, value);
  }
  return success();
}

LogicalResult Emitter::emitThreadMma(tile::ThreadMmaOp op) {
  auto words = [&](OperandRange elements) {
    SmallVector<Value> values;
    for (Value element : elements)
      values.push_back(scalar(element));
    if (!elements.front().getType().isF32())
      return packWords(builder, values);
    for (Value &value : values)
      value = roundToTf32(builder, value);
    return values;
  };
  SmallVector<Value> left = words(op.getA()), right = words(op.getB()), sums;
  for (Value sum : op.getC())
    sums.push_back(scalar(sum));
  for (auto [result, value] : llvm::zip(op.getSums(), mmaSync(builder, op.getA().front().getType(), left, right, sums)))
    define(result, {value});
  return success();
}

} // namespace kpkg::lower::nvvm
