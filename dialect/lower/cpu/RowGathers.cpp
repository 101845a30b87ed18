// Operands of dots that are gathered row by row: a table of rows, then copies of their pieces.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The copy lies as the memory does: row by row where the elements of a row are neighbours, else column by column, where rows that are neighbours in memory are
// copied as vectors. Packing then reads it like any other operand. Indices are computed once for each row instead of once for each element.
#include "dialect/lower/cpu/DotCode.h"
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::cpu {

/// Marks a row that is outside of the view.
static constexpr int64_t kOutside = std::numeric_limits<int64_t>::min();

namespace {
struct Copies {
  DotCode &code;
  Type element;             // as in memory
  int64_t rows, columns, bytes;
  Value table;              // i64 offset of each row
  Value base;               // its first element, at the first column
  Value stride, begin, end; // of columns in memory; which of them there are
  Value copy;               // rows * columns elements

  Value offsetOf(Value row) { return code.load(code.b.getI64Type(), code.at(table, code.b.getI64Type(), row), 8); }
  Value isInside(Value offset) {
    Value outside = arith::ConstantOp::create(code.b, code.b.getI64IntegerAttr(kOutside));
    return arith::CmpIOp::create(code.b, arith::CmpIPredicate::ne, offset, outside);
  }
  Value asIndex(Value offset) { return arith::IndexCastOp::create(code.b, code.b.getIndexType(), offset); }
  Value zero(Type type) { return arith::ConstantOp::create(code.b, code.b.getZeroAttr(type)); }

  /// Elements that are neighbours in a row.
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

  /// Rows that are neighbours in memory, `lanes` at a time.
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
            // What is outside is read again and again from a place that holds zero.
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

/// Vectors that a row of the copy, and a column of it, consist of; 8 lanes or fewer.
static int64_t lanesFor(Type element, const VectorUnit &unit) { return std::min<int64_t>(8, unit.vectorBytes / memoryBytes(element)); }

bool KernelEmitter::canCopyRows(tile::GatherOp op) {
  auto type = cast<RankedTensorType>(op.getResult().getType());
  int64_t lanes = lanesFor(type.getElementType(), target.unit);
  return tile::rowGather(op) && type.getDimSize(0) % lanes == 0 && type.getDimSize(1) % lanes == 0;
}

FailureOr<DotOperand> KernelEmitter::gatheredOperand(tile::GatherOp op, bool isTransposed) {
  std::optional<tile::RowGather> gather = tile::rowGather(op);
  auto type = cast<RankedTensorType>(op.getResult().getType());
  const View view = views.at(op.getView());
  int64_t rows = type.getDimSize(0), columns = type.getDimSize(1), bytes = memoryBytes(view.element);
  Type i64 = builder.getI64Type(), element = memoryType(view.element);
  Value table = allocateBytes(rows * 8), copy = allocateBytes(rows * columns * bytes), nothing = allocateBytes(8);

  Value start = indexConstant(0);
  for (Value part : gather->start) {
    Value value = scalars.at(part);
    start = add(start, value.getType().isIndex() ? value : make<arith::IndexCastOp>(builder.getIndexType(), value));
  }
  openScope(nullptr);
  scf::ForOp loop = openLoop(indexConstant(0), indexConstant(rows), indexConstant(1));
  Position position;
  position.index = {loop.getInductionVar(), indexConstant(0)};
  Value inside = view.valid, offset = indexConstant(0);
  for (auto [dim, tile] : llvm::enumerate(op.getIndices())) {
    if (dim == gather->along)
      continue;
    Value index = emit(tile, position);
    inside = both(inside, compare(arith::CmpIPredicate::ult, index, view.shape[dim]));
    offset = add(offset, mul(index, view.stride[dim]));
  }
  Value wide = arith::IndexCastOp::create(builder, loc, i64, offset);
  if (inside)
    wide = arith::SelectOp::create(builder, loc, inside, wide, arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(kOutside)));
  LLVM::StoreOp::create(builder, loc, wide, elementPointer(table, i64, loop.getInductionVar()), 8);
  closeLoop(loop);
  closeScope();

  int64_t lanes = lanesFor(view.element, target.unit);
  DotPlan plan = planDot({rows, columns, columns, type.getElementType().isF64() ? type.getElementType() : Type(builder.getF32Type())}, target.unit);
  DotCode code(builder, loc, plan);
  Value stride = view.stride[gather->along];
  Value end = code.max(code.index(0), code.min(code.index(columns), code.sub(view.shape[gather->along], start)));
  Value begin = code.max(code.index(0), code.sub(code.index(0), start));
  Value base = code.at(view.pointer, element, code.mul(start, stride));
  Copies copies{code, element, rows, columns, bytes, table, base, stride, begin, end, copy};
  code.store(arith::ConstantOp::create(builder, loc, builder.getZeroAttr(element)), nothing, bytes);
  Value along = code.isOne(stride);
  code.ifElse(along, [&] { copies.alongRows(lanes); }, [&] { copies.acrossRows(lanes, nothing); });

  DotOperand operand;
  operand.base = copy;
  operand.elementType = type.getElementType();
  operand.stride = {arith::SelectOp::create(builder, loc, along, code.index(columns), code.index(1)),
                    arith::SelectOp::create(builder, loc, along, code.index(1), code.index(rows))};
  operand.begin[1] = begin;
  operand.end[1] = end;
  if (isTransposed) {
    std::swap(operand.stride[0], operand.stride[1]);
    std::swap(operand.begin[0], operand.begin[1]);
    std::swap(operand.end[0], operand.end[1]);
  }
  return operand;
}

} // namespace kpkg::lower::cpu
