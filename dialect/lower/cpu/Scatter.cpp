// Emits scatters and atomic updates, element by element.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/atomics/AtomicInstruction.h"
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/lower/math/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::cpu {

void KernelEmitter::forEachIndexed(Value viewValue, ValueRange indices, Value mask, ArrayRef<int64_t> shape,
                                   llvm::function_ref<void(Value, Value, const Position &)> function) {
  const View view = views.at(viewValue);
  openScope(nullptr);
  forEachElement(shape, -1, [&](const Position &position) {
    Value valid = view.valid, offset = indexConstant(0);
    for (auto [dim, tile] : llvm::enumerate(indices)) {
      Value index = emit(tile, position);
      valid = both(valid, compare(arith::CmpIPredicate::ult, index, view.shape[dim]));
      offset = add(offset, mul(index, view.stride[dim]));
    }
    if (mask)
      valid = both(valid, emit(mask, position));
    Value pointer = elementPointer(view.pointer, view.element, offset);
    if (valid)
      pointer = LLVM::SelectOp::create(builder, loc, valid, pointer, dummy);
    function(pointer, valid, position);
  });
  closeScope();
}

LogicalResult KernelEmitter::emitScatter(tile::ScatterOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  forEachIndexed(op.getView(), op.getIndices(), op.getMask(), type.getShape(),
                 [&](Value pointer, Value, const Position &position) {
                   storeElements(emit(op.getValue(), position), pointer, type.getElementType());
                 });
  return failure(failed);
}

/// Adds to an element of 16 bits by a loop of compare-and-swap, since processors have no such instruction. Returns the
/// bits before.
Value KernelEmitter::addToNarrowFloat(Value pointer, Value value, Type element) {
  using enum LLVM::AtomicOrdering;
  Type bits = value.getType();
  Value addend = extendToF32(builder, loc, value, element);
  Value first =
      LLVM::LoadOp::create(builder, loc, bits, pointer, unsigned(memoryBytes(element)), /*isVolatile=*/false,
                           /*isNonTemporal=*/false, /*isInvariant=*/false, /*isInvariantGroup=*/false, monotonic);
  auto update = [&](OpBuilder &body, Location loc, ValueRange seen) {
    Value old = extendToF32(body, loc, seen[0], element);
    Value sum = roundToNarrow(body, loc, arith::AddFOp::create(body, loc, old, addend), element);
    Value found = LLVM::AtomicCmpXchgOp::create(body, loc, pointer, seen[0], sum, monotonic, monotonic);
    Value wrong = arith::XOrIOp::create(body, loc, LLVM::ExtractValueOp::create(body, loc, found, 1),
                                        arith::ConstantOp::create(body, loc, body.getBoolAttr(true)));
    scf::ConditionOp::create(body, loc, wrong, LLVM::ExtractValueOp::create(body, loc, found, 0).getResult());
  };
  auto again = [](OpBuilder &body, Location loc, ValueRange seen) { scf::YieldOp::create(body, loc, seen); };
  return scf::WhileOp::create(builder, loc, bits, first, update, again).getResult(0);
}

/// Returns the reduction of the old element and the value that an update writes, if it is one.
static std::optional<tile::ReduceKind> reductionOf(tile::AtomicKind kind) {
  switch (kind) {
  case tile::AtomicKind::Add:
    return tile::ReduceKind::Sum;
  case tile::AtomicKind::Max:
    return tile::ReduceKind::Max;
  case tile::AtomicKind::Min:
    return tile::ReduceKind::Min;
  case tile::AtomicKind::UMax:
    return tile::ReduceKind::UMax;
  case tile::AtomicKind::UMin:
    return tile::ReduceKind::UMin;
  case tile::AtomicKind::Exchange:
  case tile::AtomicKind::CompareExchange:
    return std::nullopt;
  }
  llvm_unreachable("all kinds are listed");
}

/// Emits the update of one element, and returns the old one as it is in memory.
Value KernelEmitter::updateElement(const Update &update, Value pointer) {
  using enum LLVM::AtomicOrdering;
  Type element = update.element;
  Value value = toMemory(update.value, element);
  if (isNarrowFloat(element))
    return addToNarrowFloat(pointer, value, element);
  if (std::optional<tile::ReduceKind> reduction = reductionOf(update.kind); reduction && update.isOfBlock) {
    Value old = loadElements(pointer, element, 0);
    storeElements(accumulate(*reduction, old, update.value), pointer, element);
    return toMemory(old, element);
  }
  if (update.kind != tile::AtomicKind::CompareExchange)
    return LLVM::AtomicRMWOp::create(builder, loc, atomicInstruction(update.kind, isa<FloatType>(element)), pointer,
                                     value, monotonic);
  Type bits = builder.getIntegerType(unsigned(8 * memoryBytes(element)));
  auto bitsOf = [&](Value of) { return builder.createOrFold<arith::BitcastOp>(loc, bits, of); };
  Value expected = bitsOf(toMemory(update.expected, element));
  Value found = LLVM::AtomicCmpXchgOp::create(builder, loc, pointer, expected, bitsOf(value), monotonic, monotonic);
  Value old = LLVM::ExtractValueOp::create(builder, loc, found, 0);
  return builder.createOrFold<arith::BitcastOp>(loc, memoryType(element), old);
}

LogicalResult KernelEmitter::emitAtomic(tile::AtomicOp op) {
  auto type = cast<RankedTensorType>(op.getValue().getType());
  Type element = type.getElementType();
  bool hasOld = op.getOld() && !op.getOld().use_empty();
  std::optional<Buffer> before;
  if (hasOld)
    before = allocate(type);
  forEachIndexed(op.getView(), op.getIndices(), op.getMask(), type.getShape(),
                 [&](Value pointer, Value valid, const Position &position) {
                   Update update{op.getKind(), element, emit(op.getValue(), position),
                                 op.getExpected() ? emit(op.getExpected(), position) : Value(),
                                 !isa<BlockArgument>(tile::argumentOf(op.getView()))};
                   Value old = updateElement(update, pointer);
                   if (!hasOld)
                     return;
                   old = fromMemory(old, element);
                   if (valid)
                     old = arith::SelectOp::create(builder, loc, valid, old,
                                                   constant(builder.getZeroAttr(old.getType())));
                   writeBuffer(*before, position, old);
                 });
  if (hasOld)
    buffers[op.getOld()] = *before;
  return failure(failed);
}

} // namespace kpkg::lower::cpu
