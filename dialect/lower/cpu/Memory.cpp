// Emits loads and stores of vectors and scalars: views, masks, strides.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace kpkg::lower::cpu {

static Type likeShape(Type shaped, Type element) {
  if (auto vector = dyn_cast<VectorType>(shaped))
    return VectorType::get(vector.getShape(), element);
  return element;
}

Value KernelEmitter::toMemory(Value value, Type element) {
  Type type = likeShape(value.getType(), memoryType(element));
  if (element.isInteger(1))
    return make<arith::ExtUIOp>(type, value);
  if (element.isIndex())
    return make<arith::IndexCastOp>(type, value);
  return value;
}

Value KernelEmitter::fromMemory(Value value, Type element) {
  Type type = likeShape(value.getType(), registerType(element));
  if (element.isInteger(1)) {
    Value zero = constant(builder.getZeroAttr(value.getType()));
    return compare(arith::CmpIPredicate::ne, value, zero);
  }
  if (element.isIndex())
    return make<arith::IndexCastOp>(type, value);
  return value;
}

Value KernelEmitter::elementPointer(Value base, Type element, Value offset) {
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Type type = memoryType(element);
  return hoisted({base, offset}, [&]() -> Value {
    Value wide = builder.createOrFold<arith::IndexCastOp>(loc, builder.getI64Type(), offset);
    return LLVM::GEPOp::create(builder, loc, pointer, type, base, ValueRange{wide});
  });
}

Value KernelEmitter::loadElements(Value pointer, Type element, int64_t count) {
  Type type = memoryType(element);
  if (count > 0)
    type = VectorType::get({count}, type);
  Value raw = LLVM::LoadOp::create(builder, loc, type, pointer, unsigned(memoryBytes(element)));
  return fromMemory(raw, element);
}

void KernelEmitter::storeElements(Value value, Value pointer, Type element) {
  LLVM::StoreOp::create(builder, loc, toMemory(value, element), pointer, unsigned(memoryBytes(element)));
}

Value KernelEmitter::loadScalarChecked(Value pointer, Value valid, Value fill, Type element) {
  if (!valid)
    return loadElements(pointer, element, 0);
  // Replaces an invalid address by a readable one, so that no branch is needed.
  Value safe = LLVM::SelectOp::create(builder, loc, valid, pointer, dummy);
  Value loaded = loadElements(safe, element, 0);
  return arith::SelectOp::create(builder, loc, valid, loaded, fill);
}

/// Returns whether the coordinates of all dimensions but `except` are inside the view. Null means that no check is
/// needed.
Value KernelEmitter::outerValid(const View &view, ValueRange offsets, const Position &position, int except) {
  Value valid = view.valid;
  for (int dim = 0, rank = offsets.size(); dim < rank; ++dim) {
    if (dim == except || !position.index[dim])
      continue;
    Value coordinate = add(offsets[dim], position.index[dim]);
    valid = both(valid, compare(arith::CmpIPredicate::ult, coordinate, view.shape[dim]));
  }
  return valid;
}

/// Returns the mask of lanes in [begin, end), where the bounds are arbitrary indices.
Value KernelEmitter::laneMask(Value begin, Value end) {
  Value zero = indexConstant(0), all = indexConstant(lanes);
  auto lane32 = VectorType::get({lanes}, builder.getI32Type());
  SmallVector<int32_t> ids;
  for (int32_t lane = 0; lane < lanes; ++lane)
    ids.push_back(lane);
  Value lane = constant(DenseElementsAttr::get(lane32, ArrayRef<int32_t>(ids)));
  auto clampTo32 = [&](Value bound) {
    Value clamped = smax(smin(bound, all), zero);
    return splatTo(make<arith::IndexCastOp>(builder.getI32Type(), clamped), lanes);
  };
  Value mask;
  if (end)
    mask = compare(arith::CmpIPredicate::slt, lane, clampTo32(end));
  if (begin)
    mask = both(mask, compare(arith::CmpIPredicate::sge, lane, clampTo32(begin)));
  return mask;
}

/// Prefetches the data of the next blocks when the nest is the first to read `op`. Rows are often one page long, and
/// hardware prefetchers stop at page boundaries.
void KernelEmitter::prefetchAhead(tile::LoadOp op, Value pointer) {
  constexpr int32_t ahead = 4096;
  if (!firstReads.contains(op))
    return;
  auto type = LLVM::LLVMPointerType::get(builder.getContext());
  Value later = LLVM::GEPOp::create(builder, loc, type, builder.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{ahead});
  LLVM::Prefetch::create(builder, loc, later, /*rw=*/0, /*hint=*/3, /*cache=*/1);
}

/// Returns the address of a vector filled with the load's fill, or null. It exists for a view of an optional tensor
/// with a constant fill.
Value KernelEmitter::lineOfFills(tile::LoadOp op) {
  Value fill = scalars.at(op.getFill());
  TypedAttr attribute;
  if (!views.at(op.getView()).absent || !matchPattern(fill, m_Constant(&attribute)))
    return Value();
  Value &line = fillLines[fill];
  if (line)
    return line;
  OpBuilder::InsertionGuard guard(builder);
  Type element = cast<RankedTensorType>(op.getType()).getElementType();
  auto type = VectorType::get({lanes}, memoryType(element));
  Value fills = splatTo(toMemory(fill, element), lanes);
  builder.setInsertionPointAfterValue(status);
  auto pointer = LLVM::LLVMPointerType::get(builder.getContext());
  Value one = LLVM::ConstantOp::create(builder, loc, builder.getI64Type(), 1);
  line = LLVM::AllocaOp::create(builder, loc, pointer, type, one, 64);
  LLVM::StoreOp::create(builder, loc, fills, line, unsigned(memoryBytes(element)));
  return line;
}

Value KernelEmitter::emitLoad(tile::LoadOp op, const Position &position) {
  const View &view = views.at(op.getView());
  Type element = view.element;
  Value fill = scalars.at(op.getFill());
  SmallVector<Value> offsets;
  for (Value offset : op.getOffsets())
    offsets.push_back(scalars.at(offset));
  int rank = offsets.size();
  for (Value index : position.index)
    if (!index)
      return fill;

  // The address of the first lane is built from the outermost dimension inwards, so that the outer part is shared.
  Value pointer = view.pointer;
  int vector = position.vector;
  for (int dim = 0; dim < rank; ++dim)
    if (dim != vector)
      pointer = elementPointer(pointer, element, mul(add(offsets[dim], position.index[dim]), view.stride[dim]));
  Value valid = outerValid(view, offsets, position, vector);
  if (vector < 0)
    return hoisted({pointer, valid, fill}, [&] { return loadScalarChecked(pointer, valid, fill, element); });

  Value coordinate = add(offsets[vector], position.index[vector]), stride = view.stride[vector];
  // Applies to masked loads too: processors are slow at invalid addresses, even if masked off.
  if (Value line = lineOfFills(op)) {
    stride = choose(view.absent, indexConstant(0), stride);
    pointer = hoisted({view.absent, line, pointer},
                      [&]() -> Value { return LLVM::SelectOp::create(builder, loc, view.absent, line, pointer); });
  }
  pointer = elementPointer(pointer, element, mul(coordinate, stride));
  bool unit = view.unit == vector;
  SmallVector<Value> operands = {pointer, valid, coordinate};
  auto vectorType = VectorType::get({lanes}, memoryType(element));
  auto lanePointers = [&]() -> Value {
    auto type = VectorType::get({lanes}, LLVM::LLVMPointerType::get(builder.getContext()));
    auto index = VectorType::get({lanes}, builder.getI64Type());
    SmallVector<int64_t> ids;
    for (int64_t lane = 0; lane < lanes; ++lane)
      ids.push_back(lane);
    Value lane = constant(DenseElementsAttr::get(index, ArrayRef<int64_t>(ids)));
    Value stride = make<arith::IndexCastOp>(builder.getI64Type(), view.stride[vector]);
    Value offset = mul(lane, splatTo(stride, lanes));
    return LLVM::GEPOp::create(builder, loc, type, memoryType(element), pointer, ValueRange{offset});
  };
  if (!checkedLoads)
    return hoisted(operands, [&]() -> Value {
      if (unit) {
        prefetchAhead(op, pointer);
        return loadElements(pointer, element, lanes);
      }
      Value result = constant(builder.getZeroAttr(vectorType));
      for (int64_t lane = 0; lane < lanes; ++lane) {
        Value at = elementPointer(pointer, element, mul(stride, indexConstant(lane)));
        Value one = LLVM::LoadOp::create(builder, loc, memoryType(element), at, unsigned(memoryBytes(element)));
        result = vector::InsertOp::create(builder, loc, one, result, ArrayRef<int64_t>{lane});
      }
      return fromMemory(result, element);
    });

  return hoisted(operands, [&]() -> Value {
    Value end = choose(valid, sub(view.shape[vector], coordinate), indexConstant(0));
    Value mask = laneMask(sub(indexConstant(0), coordinate), end);
    Value fills = splatTo(toMemory(fill, element), lanes);
    Value raw;
    unsigned alignment = memoryBytes(element);
    if (unit)
      raw = LLVM::MaskedLoadOp::create(builder, loc, vectorType, pointer, mask, fills,
                                       builder.getI32IntegerAttr(alignment));
    else
      raw = LLVM::masked_gather::create(builder, loc, vectorType, lanePointers(), mask, ValueRange{fills},
                                        builder.getI32IntegerAttr(alignment));
    return fromMemory(raw, element);
  });
}

/// Stores the lanes of `value` before `end`, an index along the vector dimension. Null means all lanes.
void KernelEmitter::storeChunk(tile::StoreOp op, const Position &position, Value value, Value end) {
  const View &view = views.at(op.getView());
  Type element = view.element;
  int vector = position.vector;
  Value pointer = view.pointer;
  for (int dim = 0, rank = op.getOffsets().size(); dim < rank; ++dim)
    if (dim != vector)
      pointer = elementPointer(pointer, element,
                               mul(add(scalars.at(op.getOffsets()[dim]), position.index[dim]), view.stride[dim]));
  if (vector < 0)
    return storeElements(value, pointer, element);
  Value coordinate = add(scalars.at(op.getOffsets()[vector]), position.index[vector]);
  pointer = elementPointer(pointer, element, mul(coordinate, view.stride[vector]));
  value = splatTo(value, lanes);
  unsigned alignment = memoryBytes(element);
  Value raw = toMemory(value, element);
  Value mask = end ? laneMask(Value(), sub(end, position.index[vector])) : Value();
  if (view.unit == vector) {
    if (mask)
      LLVM::MaskedStoreOp::create(builder, loc, raw, pointer, mask, alignment);
    else
      LLVM::StoreOp::create(builder, loc, raw, pointer, alignment);
    return;
  }
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value at = elementPointer(pointer, element, mul(view.stride[vector], indexConstant(lane)));
    Value one = vector::ExtractOp::create(builder, loc, raw, ArrayRef<int64_t>{lane});
    if (!mask) {
      LLVM::StoreOp::create(builder, loc, one, at, alignment);
      continue;
    }
    // A lane that must not be written goes to memory that is never read.
    Value on = vector::ExtractOp::create(builder, loc, mask, ArrayRef<int64_t>{lane});
    LLVM::StoreOp::create(builder, loc, one, LLVM::SelectOp::create(builder, loc, on, at, dummy), alignment);
  }
}

Value KernelEmitter::emitGather(tile::GatherOp op, const Position &position) {
  const View &view = views.at(op.getView());
  Type element = view.element;
  Value fill = scalars.at(op.getFill());
  Value valid = view.valid, offset = indexConstant(0);
  int64_t count = position.vector < 0 ? 0 : lanes;
  auto widen = [&](Value value) { return count ? splatTo(value, count) : value; };
  valid = valid ? widen(valid) : valid;
  for (auto [dim, tile] : llvm::enumerate(op.getIndices())) {
    Value index = widen(emit(tile, position));
    valid = both(valid, compare(arith::CmpIPredicate::ult, index, widen(view.shape[dim])));
    Value part = mul(index, widen(view.stride[dim]));
    offset = dim ? add(offset, part) : part;
  }
  if (op.getMask())
    valid = both(valid, widen(emit(op.getMask(), position)));
  if (!count) {
    Value pointer = elementPointer(view.pointer, element, offset);
    return hoisted({pointer, valid, fill}, [&] { return loadScalarChecked(pointer, valid, fill, element); });
  }
  return hoisted({valid, offset, view.pointer}, [&]() -> Value {
    auto pointers = VectorType::get({count}, LLVM::LLVMPointerType::get(builder.getContext()));
    Value wide = make<arith::IndexCastOp>(VectorType::get({count}, builder.getI64Type()), widen(offset));
    Value at = LLVM::GEPOp::create(builder, loc, pointers, memoryType(element), view.pointer, ValueRange{wide});
    if (!valid)
      valid = constant(DenseElementsAttr::get(VectorType::get({count}, builder.getI1Type()), true));
    Value fills = splatTo(toMemory(fill, element), count);
    Value raw = LLVM::masked_gather::create(builder, loc, VectorType::get({count}, memoryType(element)), at, valid,
                                            ValueRange{fills}, builder.getI32IntegerAttr(memoryBytes(element)));
    return fromMemory(raw, element);
  });
}

} // namespace kpkg::lower::cpu
