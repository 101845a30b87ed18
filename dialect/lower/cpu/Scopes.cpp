// Manages the open loops of a nest: hoisting, cached values, and small builders.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace kpkg::lower::cpu {

void KernelEmitter::openScope(Operation *op, bool barrier) { scopes.push_back({op, barrier, {}, {}}); }

void KernelEmitter::closeScope() { scopes.pop_back(); }

size_t KernelEmitter::levelOf(ValueRange values) {
  size_t floor = 0;
  for (size_t i = scopes.size(); i-- > 1;)
    if (scopes[i].barrier) {
      floor = i;
      break;
    }
  size_t level = floor;
  for (Value value : values) {
    if (!value)
      continue;
    Operation *parent = value.getParentBlock()->getParentOp();
    for (size_t i = scopes.size(); i-- > level + 1;)
      if (scopes[i].op->isAncestor(parent)) {
        level = i;
        break;
      }
  }
  return level;
}

Value KernelEmitter::hoisted(ValueRange operands, llvm::function_ref<Value()> build) {
  OpBuilder::InsertionGuard guard(builder);
  if (!scopes.empty()) {
    size_t level = levelOf(operands);
    if (level + 1 < scopes.size())
      builder.setInsertionPoint(scopes[level + 1].op);
  }
  return build();
}

Value KernelEmitter::constant(TypedAttr attribute) {
  Value &value = constants[attribute];
  if (!value) {
    // All constants are placed at the start of the function, where they do not limit hoisting.
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(entryBlock);
    value = arith::ConstantOp::create(builder, loc, attribute);
  }
  return value;
}

Value KernelEmitter::settle(Value value) {
  TypedAttr attribute;
  if (matchPattern(value, m_Constant(&attribute)))
    return constant(attribute);
  return value;
}

Value KernelEmitter::indexConstant(int64_t value) { return constant(builder.getIndexAttr(value)); }

Value KernelEmitter::splatTo(Value value, int64_t count) {
  if (isa<VectorType>(value.getType()))
    return value;
  auto type = VectorType::get({count}, value.getType());
  TypedAttr attribute;
  if (matchPattern(value, m_Constant(&attribute)))
    return constant(DenseElementsAttr::get(type, Attribute(attribute)));
  return hoisted(value, [&] { return vector::BroadcastOp::create(builder, loc, type, value).getResult(); });
}

Value KernelEmitter::add(Value a, Value b) { return make<arith::AddIOp>(a, b); }
Value KernelEmitter::sub(Value a, Value b) { return make<arith::SubIOp>(a, b); }
Value KernelEmitter::mul(Value a, Value b) { return make<arith::MulIOp>(a, b); }
Value KernelEmitter::smin(Value a, Value b) { return a == b ? a : make<arith::MinSIOp>(a, b); }
Value KernelEmitter::smax(Value a, Value b) { return a == b ? a : make<arith::MaxSIOp>(a, b); }
Value KernelEmitter::compare(arith::CmpIPredicate predicate, Value a, Value b) {
  return make<arith::CmpIOp>(predicate, a, b);
}
Value KernelEmitter::choose(Value condition, Value a, Value b) {
  if (!condition || a == b)
    return a;
  return make<arith::SelectOp>(condition, a, b);
}
Value KernelEmitter::both(Value a, Value b) {
  if (!a || !b)
    return a ? a : b;
  return make<arith::AndIOp>(a, b);
}

scf::ForOp KernelEmitter::openLoop(Value begin, Value end, Value step, ValueRange inits) {
  auto loop = scf::ForOp::create(builder, loc, begin, end, step, inits);
  // Without results the builder has created the terminator already; otherwise closeLoop creates it.
  builder.setInsertionPointToStart(loop.getBody());
  openScope(loop);
  return loop;
}

void KernelEmitter::closeLoop(scf::ForOp loop, ValueRange results) {
  if (!results.empty() || loop.getNumResults())
    scf::YieldOp::create(builder, loc, results);
  closeScope();
  builder.setInsertionPointAfter(loop);
}

Buffer KernelEmitter::allocate(Type tileType) {
  auto type = cast<RankedTensorType>(tileType);
  Buffer buffer;
  buffer.element = type.getElementType();
  buffer.stride.assign(type.getRank(), 0);
  int64_t size = 1;
  bool innermost = true;
  for (int dim = type.getRank(); dim-- > 0;) {
    int64_t extent = type.getDimSize(dim);
    if (extent == 1)
      continue;
    buffer.stride[dim] = size;
    // Whole vectors are written at the end of a row.
    size *= innermost ? llvm::alignTo(extent, lanes) : extent;
    innermost = false;
  }
  // Vector loads may start anywhere before a row's end.
  buffer.pointer = allocateBytes((size + lanes) * memoryBytes(buffer.element));
  return buffer;
}

Value KernelEmitter::allocateBytes(int64_t bytes) {
  int64_t offset = scratchBytes;
  scratchBytes = llvm::alignTo(scratchBytes + bytes, 64);
  scratchPeak = std::max(scratchPeak, scratchBytes);
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(scratch);
  return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(), scratch,
                             ArrayRef<LLVM::GEPArg>{int32_t(offset)}, LLVM::GEPNoWrapFlags::inbounds);
}

LogicalResult KernelEmitter::error(Operation *op, const Twine &message) {
  failed = true;
  return op->emitError(message);
}

} // namespace kpkg::lower::cpu
