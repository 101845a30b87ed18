// Operands of dots that are gathered row by row: a table of where rows lie, from which the dot packs them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices are computed once for each row instead of once for each element.
#include "dialect/lower/cpu/Dot.h"
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::cpu {

FailureOr<DotOperand> KernelEmitter::gatheredOperand(tile::GatherOp op, bool isTransposed) {
  std::optional<tile::RowGather> gather = tile::rowGather(op);
  auto type = cast<RankedTensorType>(op.getResult().getType());
  const View view = views.at(op.getView());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  Type i64 = builder.getI64Type();
  constexpr int64_t bytesBefore = 64; // of which the last entry is one
  Value table = elementPointer(allocateBytes(bytesBefore + (rows + kLinesBehind) * 8), i64, indexConstant(bytesBefore / 8));
  Value nothing = allocateBytes(64);

  Value start = indexConstant(0);
  for (Value part : gather->start) {
    Value value = scalars.at(part);
    start = add(start, value.getType().isIndex() ? value : make<arith::IndexCastOp>(builder.getIndexType(), value));
  }
  openScope(nullptr);
  bool isVector = rows % lanes == 0;
  int64_t count = isVector ? lanes : 0;
  // Carries how many rows there are up to the last one inside: pixels behind the end of an image take no time.
  scf::ForOp loop = openLoop(indexConstant(0), indexConstant(rows), indexConstant(isVector ? lanes : 1), indexConstant(0));
  Position position;
  position.index = {loop.getInductionVar(), indexConstant(0)};
  position.vector = isVector ? 0 : -1;
  auto widen = [&](Value value) { return count && value ? splatTo(value, count) : value; };
  Value inside = widen(view.valid), offset = widen(indexConstant(0));
  for (auto [dim, tile] : llvm::enumerate(op.getIndices())) {
    if (dim == gather->along)
      continue;
    Value index = widen(emit(tile, position));
    inside = both(inside, compare(arith::CmpIPredicate::ult, index, widen(view.shape[dim])));
    offset = add(offset, mul(index, widen(view.stride[dim])));
  }
  auto wideOf = [&](int64_t value) -> Value {
    if (!count)
      return arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value));
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(VectorType::get({count}, i64), value));
  };
  Value wide = arith::IndexCastOp::create(builder, loc, count ? Type(VectorType::get({count}, i64)) : i64, offset);
  if (inside)
    wide = arith::SelectOp::create(builder, loc, inside, wide, wideOf(kNoLine));
  LLVM::StoreOp::create(builder, loc, wide, elementPointer(table, i64, loop.getInductionVar()), 8);
  Value counted = add(loop.getInductionVar(), indexConstant(isVector ? lanes : 1));
  if (inside) {
    Type i32 = builder.getI32Type();
    Value bits = count ? Value(LLVM::BitcastOp::create(builder, loc, builder.getIntegerType(count), inside)) : inside;
    bits = arith::ExtUIOp::create(builder, loc, i32, bits);
    Value leading = LLVM::CountLeadingZerosOp::create(builder, loc, i32, bits, /*is_zero_poison=*/false);
    Value length = arith::SubIOp::create(builder, loc, arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(32)), leading);
    length = add(loop.getInductionVar(), arith::IndexCastOp::create(builder, loc, builder.getIndexType(), length));
    Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, bits, arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0)));
    counted = arith::SelectOp::create(builder, loc, isAny, length, loop.getRegionIterArgs()[0]);
  }
  closeLoop(loop, counted);
  closeScope();
  auto vector = VectorType::get({8}, i64);
  Value none = constant(DenseElementsAttr::get(vector, kNoLine)), zeros = constant(DenseElementsAttr::get(vector, int64_t(0)));
  for (int64_t line = 0; line < kLinesBehind; line += 8)
    LLVM::StoreOp::create(builder, loc, none, elementPointer(table, i64, indexConstant(rows + line)), 8);
  LLVM::StoreOp::create(builder, loc, zeros, nothing, 64);

  DotOperand operand;
  operand.base = elementPointer(view.pointer, view.element, mul(start, view.stride[gather->along]));
  operand.elementType = type.getElementType();
  operand.lines = table;
  operand.nothing = nothing;
  int depth = isTransposed ? 0 : 1;
  operand.stride[depth] = view.stride[gather->along];
  operand.stride[1 - depth] = indexConstant(0);
  operand.end[1 - depth] = loop.getResult(0);
  operand.begin[depth] = smax(sub(indexConstant(0), start), indexConstant(0));
  operand.end[depth] = smax(smin(indexConstant(columns), sub(view.shape[gather->along], start)), indexConstant(0));
  return operand;
}

} // namespace kpkg::lower::cpu
