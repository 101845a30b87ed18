// Prepares dot operands that are gathered row by row: a table of row offsets, then copies of the rows if needed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Indices are computed once for each row instead of once for each element. If rows run along the depth of the dot, the
// packing code reads them through the table. Otherwise they are copied in memory order. A row with contiguous elements
// is copied as it is. Otherwise the copy runs column by column, and rows that are contiguous with each other are copied
// as vectors. Packing then reads the copy like any other operand.
#include "dialect/tile/transforms/RowGathers.h"
#include "dialect/lower/cpu/DotCode.h"
#include "dialect/lower/cpu/KernelEmitter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::cpu {

namespace {
struct Copies {
  DotCode &code;
  Type element; // As in memory.
  int64_t rows, columns, bytes;
  Value table;              // The i64 offset of each row.
  Value base;               // The address of row offset 0 at the first column.
  Value stride, begin, end; // Of columns: their stride in memory, and the range of existing ones.
  Value copy;               // rows * columns elements.

  Value offsetOf(Value row) { return code.load(code.b.getI64Type(), code.at(table, code.b.getI64Type(), row), 8); }
  Value isInside(Value offset) {
    Value outside = arith::ConstantOp::create(code.b, code.b.getI64IntegerAttr(kNoLine));
    return arith::CmpIOp::create(code.b, arith::CmpIPredicate::ne, offset, outside);
  }
  Value asIndex(Value offset) { return arith::IndexCastOp::create(code.b, code.b.getIndexType(), offset); }
  Value zero(Type type) { return arith::ConstantOp::create(code.b, code.b.getZeroAttr(type)); }

  /// Copies rows with contiguous elements.
  void alongRows(int64_t lanes) {
    Type vector = VectorType::get(lanes, element);
    Value whole = code.both(code.atMost(code.index(columns), end), code.atMost(begin, code.index(0)));
    code.forEach(code.index(0), code.index(rows), 1, [&](Value row) {
      Value offset = offsetOf(row), inside = isInside(offset);
      Value from = code.at(base, element, asIndex(offset));
      Value to = code.at(copy, element, code.mul(row, code.index(columns)));
      code.ifElse(
          code.both(inside, whole),
          [&] {
            for (int64_t i = 0; i < columns; i += lanes)
              code.store(code.load(vector, code.at(from, element, i), bytes), code.at(to, element, i), bytes);
          },
          [&] {
            for (int64_t i = 0; i < columns; i += lanes)
              code.store(zero(vector), code.at(to, element, i), bytes);
            code.ifThen(inside, [&] {
              code.forEach(begin, end, 1, [&](Value i) {
                code.store(code.load(element, code.at(from, element, i), bytes), code.at(to, element, i), bytes);
              });
            });
          });
    });
  }

  /// Copies rows that are contiguous with each other, `lanes` at a time.
  void acrossRows(int64_t lanes, Value nothing) {
    Type vector = VectorType::get(lanes, element);
    code.forEach(code.index(0), code.index(rows), lanes, [&](Value row) {
      SmallVector<Value> offsets;
      for (int64_t i = 0; i < lanes; ++i)
        offsets.push_back(offsetOf(code.add(row, code.index(i))));
      Value neighbours = isInside(offsets[0]);
      for (int64_t i = 1; i < lanes; ++i) {
        Value next = code.add(offsets[0], arith::ConstantOp::create(code.b, code.b.getI64IntegerAttr(i)));
        neighbours = code.both(neighbours, arith::CmpIOp::create(code.b, arith::CmpIPredicate::eq, offsets[i], next));
      }
      Value to = code.at(copy, element, row);
      code.ifElse(
          neighbours,
          [&] {
            Value from = code.at(base, element, asIndex(offsets[0]));
            code.forEach(begin, end, 1, [&](Value i) {
              Value value = code.load(vector, code.at(from, element, code.mul(i, stride)), bytes);
              code.store(value, code.at(to, element, code.mul(i, code.index(rows))), bytes);
            });
          },
          [&] {
            // Rows outside the view read repeatedly from a location that holds zero.
            SmallVector<Value> from, step;
            for (Value offset : offsets) {
              Value inside = isInside(offset);
              from.push_back(LLVM::SelectOp::create(code.b, inside, code.at(base, element, asIndex(offset)), nothing));
              step.push_back(arith::SelectOp::create(code.b, inside, stride, code.index(0)));
            }
            code.forEach(begin, end, 1, [&](Value i) {
              Value line = code.at(to, element, code.mul(i, code.index(rows)));
              for (int64_t lane = 0; lane < lanes; ++lane)
                code.store(code.load(element, code.at(from[lane], element, code.mul(i, step[lane])), bytes),
                           code.at(line, element, lane), bytes);
            });
          });
    });
  }
};
} // namespace

/// Returns the lanes of the vectors that the copy uses, along its rows and its columns: at most 8.
static int64_t lanesFor(Type element, const VectorUnit &unit) {
  return std::min<int64_t>(8, unit.vectorBytes / memoryBytes(element));
}

bool KernelEmitter::canCopyRows(tile::GatherOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  int64_t lanes = lanesFor(type.getElementType(), target.unit);
  return type.getDimSize(0) % lanes == 0 && type.getDimSize(1) % lanes == 0;
}

/// Returns the number of lines up to the last one that is inside. `inside` has a bit for each of `count` lines (0: one)
/// from `line` on. `counted` is the result for the lines before these.
Value KernelEmitter::countLines(Value inside, int64_t count, Value line, Value counted) {
  Type i32 = builder.getI32Type();
  Value bits = count ? Value(LLVM::BitcastOp::create(builder, loc, builder.getIntegerType(count), inside)) : inside;
  bits = arith::ExtUIOp::create(builder, loc, i32, bits);
  Value leading = LLVM::CountLeadingZerosOp::create(builder, loc, i32, bits, /*is_zero_poison=*/false);
  Value length = arith::SubIOp::create(builder, loc,
                                       arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(32)), leading);
  length = add(line, arith::IndexCastOp::create(builder, loc, builder.getIndexType(), length));
  Value isAny = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, bits,
                                      arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(0)));
  return arith::SelectOp::create(builder, loc, isAny, length, counted);
}

/// Writes the offset of each row to `table`, and kNoLine for rows outside the view. Returns the number of rows up to
/// the last one inside, so that pixels behind the end of an image take no time.
Value KernelEmitter::fillRowTable(tile::GatherOp op, unsigned along, Value table) {
  const View view = views.at(op.getView());
  int64_t rows = cast<RankedTensorType>(op.getResult().getType()).getDimSize(0);
  Type i64 = builder.getI64Type();
  openScope(nullptr);
  bool isVector = rows % lanes == 0;
  int64_t count = isVector ? lanes : 0;
  scf::ForOp loop =
      openLoop(indexConstant(0), indexConstant(rows), indexConstant(isVector ? lanes : 1), indexConstant(0));
  Position position;
  position.index = {loop.getInductionVar(), indexConstant(0)};
  position.vector = isVector ? 0 : -1;
  auto widen = [&](Value value) { return count && value ? splatTo(value, count) : value; };
  Value inside = widen(view.valid), offset = widen(indexConstant(0));
  for (auto [dim, tile] : llvm::enumerate(op.getIndices())) {
    if (dim == along)
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
  if (inside)
    counted = countLines(inside, count, loop.getInductionVar(), loop.getRegionIterArgs()[0]);
  closeLoop(loop, counted);
  closeScope();
  return loop.getResult(0);
}

/// Fills the entries behind a table of `rows` offsets, and the zeros that absent rows read.
void KernelEmitter::fillBehindTable(Value table, int64_t rows, Value nothing) {
  Type i64 = builder.getI64Type();
  auto vector = VectorType::get({8}, i64);
  Value none = constant(DenseElementsAttr::get(vector, kNoLine)),
        zeros = constant(DenseElementsAttr::get(vector, int64_t(0)));
  for (int64_t line = 0; line < kLinesBehind; line += 8)
    LLVM::StoreOp::create(builder, loc, none, elementPointer(table, i64, indexConstant(rows + line)), 8);
  LLVM::StoreOp::create(builder, loc, zeros, nothing, 64);
}

FailureOr<DotOperand> KernelEmitter::gatheredOperand(tile::GatherOp op, bool isTransposed, bool isLeft) {
  std::optional<tile::RowGather> gather = tile::rowGather(op);
  auto type = cast<RankedTensorType>(op.getResult().getType());
  const View view = views.at(op.getView());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1);
  constexpr int64_t bytesBefore = 64; // Room before the table, so that table[-1] is readable.
  Value table = elementPointer(allocateBytes(bytesBefore + (rows + kLinesBehind) * 8), builder.getI64Type(),
                               indexConstant(bytesBefore / 8));
  Value nothing = allocateBytes(64);

  Value start = indexConstant(0);
  for (Value part : gather->start) {
    Value value = scalars.at(part);
    start = add(start, value.getType().isIndex() ? value : make<arith::IndexCastOp>(builder.getIndexType(), value));
  }
  Value counted = fillRowTable(op, gather->along, table);
  fillBehindTable(table, rows, nothing);

  // The columns of the gather that exist.
  Value stride = view.stride[gather->along];
  Value begin = smax(sub(indexConstant(0), start), indexConstant(0));
  Value end = smax(smin(indexConstant(columns), sub(view.shape[gather->along], start)), indexConstant(0));
  Value base = elementPointer(view.pointer, view.element, mul(start, stride));
  DotOperand operand;
  operand.elementType = type.getElementType();
  int rowDim = isTransposed ? 1 : 0, columnDim = 1 - rowDim;
  operand.begin[columnDim] = begin;
  operand.end[columnDim] = end;
  operand.end[rowDim] = counted;
  if (isLeft != isTransposed) {
    operand.base = base;
    operand.lines = table;
    operand.nothing = nothing;
    operand.stride[columnDim] = stride;
    operand.stride[rowDim] = indexConstant(0);
    return operand;
  }
  int64_t bytes = memoryBytes(view.element), copied = lanesFor(view.element, target.unit);
  Value copy = allocateBytes(rows * columns * bytes);
  DotPlan plan = planDot(
      {rows, columns, columns, type.getElementType().isF64() ? type.getElementType() : Type(builder.getF32Type())},
      target.unit);
  DotCode code(builder, loc, plan);
  Value along = code.isOne(stride);
  Copies copies{code, memoryType(view.element), rows, columns, bytes, table, base, stride, begin, end, copy};
  code.ifElse(along, [&] { copies.alongRows(copied); }, [&] { copies.acrossRows(copied, nothing); });
  operand.base = copy;
  operand.stride[rowDim] = arith::SelectOp::create(builder, loc, along, code.index(columns), code.index(1));
  operand.stride[columnDim] = arith::SelectOp::create(builder, loc, along, code.index(1), code.index(rows));
  return operand;
}

} // namespace kpkg::lower::cpu
