// Computes addresses of elements from index tiles, and emits atomic updates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/atomics/AtomicInstruction.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/Words.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

using layout::Layout;

namespace {
/// Returns the 32-bit integer that an index was cast from, or null.
Value narrowIndex(Value index) {
  auto cast = index.getDefiningOp<arith::IndexCastOp>();
  return cast && cast.getIn().getType().isInteger(32) ? cast.getIn() : Value();
}
} // namespace

/// Returns the address and the predicate of one element.
std::pair<Value, Value> Emitter::elementAt(const View &part, ValueRange indices, Value mask, RankedTensorType type,
                                           unsigned reg) {
  const Layout &layout = kgpu::layoutOf(type);
  Value inside, distance;
  auto require = [&](Value condition) {
    if (condition)
      inside = inside ? arith::AndIOp::create(builder, inside, condition).getResult() : condition;
  };
  for (auto [dim, tile] : llvm::enumerate(indices)) {
    Value index = registersOf(tile)[reg];
    Value extent = part.shape[dim], compared = index;
    if (Value narrow = narrowIndex(index); narrow && part.type.getFacts().index == 32) {
      compared = narrow;
      extent = arith::IndexCastOp::create(builder, builder.getI32Type(), extent);
    }
    // An unsigned comparison also excludes negative indices.
    require(arith::CmpIOp::create(builder, arith::CmpIPredicate::ult, compared, extent));
    // Products that overflow 32 bits then belong to elements outside the view, which are not accessed.
    bool isSmall = part.type.getFacts().hasSmallOffsets();
    auto factor = [&](Value value) {
      return isSmall ? arith::IndexCastOp::create(builder, builder.getI32Type(), value).getResult() : value;
    };
    Value narrow = narrowIndex(index);
    Value step = arith::MulIOp::create(builder, isSmall && narrow ? narrow : factor(index), factor(part.stride[dim]));
    distance = distance ? arith::AddIOp::create(builder, distance, step).getResult() : step;
  }
  if (mask)
    require(registersOf(mask)[reg]);
  for (auto [dim, extent] : llvm::enumerate(type.getShape()))
    if (layout.shape()[dim] > extent)
      require(arith::CmpIOp::create(builder, arith::CmpIPredicate::slt, place.coordinate(builder, layout, reg, dim),
                                    constantOf(builder, extent)));
  require(part.valid);
  require(inGrid);
  Value pointer = part.pointer;
  if (distance) {
    Type element = builder.getIntegerType(8 * part.type.getElementBytes());
    Type i64 = builder.getI64Type();
    Value wide = distance.getType().isIndex() ? arith::IndexCastOp::create(builder, i64, distance).getResult()
                                              : arith::ExtSIOp::create(builder, i64, distance).getResult();
    pointer = LLVM::GEPOp::create(builder, pointer.getType(), element, pointer, ValueRange{wide});
  }
  return {pointer, inside};
}

/// Emits the update of the element at `pointer`, and returns the old element.
Value Emitter::updateElement(const Update &update, Value pointer) {
  using enum LLVM::AtomicOrdering;
  Type element = update.element;
  auto inMemory = [&](Value value) {
    return element.isIndex() ? arith::IndexCastOp::create(builder, builder.getI64Type(), value).getResult() : value;
  };
  Value value = inMemory(update.value);
  StringRef scope = isShared(pointer) && launch.cluster == 1 ? "block" : "device";
  if (update.kind == tile::AtomicKind::CompareExchange) {
    Value expected = bitsOfElement(builder, inMemory(update.expected));
    Value found = LLVM::AtomicCmpXchgOp::create(builder, pointer, expected, bitsOfElement(builder, value), monotonic,
                                                monotonic, scope);
    return elementOfBits(builder, LLVM::ExtractValueOp::create(builder, found, 0), element);
  }
  LLVM::AtomicBinOp instruction = atomicInstruction(update.kind, isa<FloatType>(element));
  Value old = LLVM::AtomicRMWOp::create(builder, instruction, pointer, value, monotonic, scope);
  return update.hasOld && element.isIndex() ? arith::IndexCastOp::create(builder, element, old).getResult() : old;
}

/// Emits relaxed updates, with the scope of all who have access. Where their results are unused, ptxas emits reductions
/// (red). Only the first replica of an element has its old value.
LogicalResult Emitter::emitAtomic(tile::AtomicOp op) {
  const View &part = view(op.getView());
  auto type = cast<RankedTensorType>(op.getValue().getType());
  const Layout &layout = kgpu::layoutOf(op.getValue());
  Type element = type.getElementType();
  bool hasOld = op.getOld() && !op.getOld().use_empty();
  Value first = place.isFirstReplica(layout);
  TileRegisters old;
  auto updateOf = [&](unsigned reg) {
    Value expected = op.getExpected() ? registersOf(op.getExpected())[reg] : Value();
    return Update{op.getKind(), element, registersOf(op.getValue())[reg], expected, bool(op.getOld())};
  };
  for (unsigned reg = 0; reg < layout.registers(); ++reg) {
    auto [pointer, inside] = elementAt(part, op.getIndices(), op.getMask(), type, reg);
    if (first)
      inside = inside ? arith::AndIOp::create(builder, inside, first).getResult() : first;
    if (!inside) {
      old.push_back(updateElement(updateOf(reg), pointer));
      continue;
    }
    OpBuilder::InsertionGuard guard(builder);
    Value zero;
    if (hasOld)
      zero = arith::ConstantOp::create(builder, builder.getZeroAttr(element));
    auto branch = scf::IfOp::create(builder, hasOld ? TypeRange(element) : TypeRange(), inside, hasOld);
    builder.setInsertionPointToStart(branch.thenBlock());
    Value found = updateElement(updateOf(reg), pointer);
    if (!hasOld)
      continue;
    scf::YieldOp::create(builder, found);
    builder.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(builder, zero);
    old.push_back(branch.getResult(0));
  }
  if (hasOld)
    define(op.getOld(), std::move(old));
  return success();
}

} // namespace kpkg::lower::nvvm
