// Multiplies few rows without packing, which would cost more than the product.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If columns of B are contiguous, vectors run along them, and elements of A are broadcast. If the depth is contiguous
// in both operands, as in x @ weight.T, vectors run along the depth. Each accumulator is then reduced over its lanes at
// the end.
#include "dialect/lower/cpu/DotCode.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace kpkg::lower::cpu {

/// The accumulators of a register tile with vectors along columns: enough to hide the latency of additions.
static constexpr int64_t sumsAcross = 8;
/// Rows and columns of a register tile with vectors along the depth.
static constexpr int64_t rowsAlong = 2, columnsAlong = 4;

static Value elementAddress(DotCode &code, const BoundedOperand &operand, Value i, Value j) {
  Value offset = code.add(code.mul(i, operand.stride[0]), code.mul(j, operand.stride[1]));
  return code.at(operand.base, operand.elementType, offset);
}

static Value zeros(DotCode &code, VectorType type) {
  return arith::ConstantOp::create(code.b, DenseElementsAttr::get(type, code.b.getFloatAttr(type.getElementType(), 0)));
}

static Value isBelow(DotCode &code, Value x, Value y) {
  return arith::CmpIOp::create(code.b, arith::CmpIPredicate::slt, x, y);
}

/// Emits a loop over [begin, end) that carries `sums`, which `body` replaces.
static void carry(DotCode &code, Value begin, Value end, int64_t step, SmallVector<Value> &sums,
                  llvm::function_ref<void(Value, MutableArrayRef<Value>)> body) {
  auto loop = scf::ForOp::create(code.b, begin, end, code.index(step), sums);
  {
    OpBuilder::InsertionGuard guard(code.b);
    code.b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> next(loop.getRegionIterArgs());
    body(loop.getInductionVar(), next);
    scf::YieldOp::create(code.b, next);
  }
  sums.assign(loop.getResults().begin(), loop.getResults().end());
}

/// Multiplies one panel of `vectors` vectors of columns, for all rows. `isCut`: the panel extends beyond the last
/// column.
static void multiplyPanelAcross(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, Value depth,
                                Value column, int64_t vectors, bool isCut, Value acc, int64_t accStride) {
  const DotPlan &plan = code.plan;
  int64_t lanes = plan.lanes, rowsAcross = sumsAcross / vectors;
  Type type = plan.shape.accType;
  VectorType vector = code.vectorOf(lanes);
  SmallVector<Value> masks;
  for (int64_t j = 0; isCut && j < vectors; ++j)
    masks.push_back(firstLanes(code, code.sub(b.end[1], code.add(column, code.index(j * lanes))), lanes));
  Value last = code.sub(a.end[0], code.index(1)), zero = code.index(0);
  Value top = elementAddress(code, b, zero, column);
  code.forEach(zero, a.end[0], rowsAcross, [&](Value row) {
    SmallVector<Value> lines, sums(rowsAcross * vectors, zeros(code, vector));
    for (int64_t r = 0; r < rowsAcross; ++r)
      lines.push_back(elementAddress(code, a, code.min(code.add(row, code.index(r)), last), zero));
    carry(code, zero, depth, 1, sums, [&](Value k, MutableArrayRef<Value> next) {
      Value line = code.at(top, b.elementType, code.mul(k, b.stride[0]));
      SmallVector<Value> columns;
      for (int64_t j = 0; j < vectors; ++j) {
        Value at = code.at(line, b.elementType, j * lanes);
        columns.push_back(isCut ? code.converted(code.loadMasked(at, b.elementType, masks[j], Value()), b.elementType)
                                : code.loadConverted(at, b.elementType, lanes));
      }
      for (int64_t r = 0; r < rowsAcross; ++r) {
        Value at = code.at(lines[r], a.elementType, code.mul(k, a.stride[1]));
        Value one = vector::BroadcastOp::create(code.b, vector, code.loadConverted(at, a.elementType, 0));
        for (int64_t j = 0; j < vectors; ++j)
          next[r * vectors + j] = code.multiplyAdd(one, columns[j], next[r * vectors + j]);
      }
    });
    for (int64_t r = 0; r < rowsAcross; ++r) {
      Value at = code.add(row, code.index(r));
      code.ifThen(isBelow(code, at, a.end[0]), [&] {
        Value corner = code.at(acc, type, code.add(code.mul(at, code.index(accStride)), column));
        for (int64_t j = 0; j < vectors; ++j) {
          Value place = code.at(corner, type, j * lanes), sum = sums[r * vectors + j];
          Value old =
              isCut ? code.loadMasked(place, type, masks[j], Value()) : code.load(vector, place, code.accBytes());
          sum = arith::AddFOp::create(code.b, old, sum);
          if (isCut)
            LLVM::MaskedStoreOp::create(code.b, sum, place, masks[j], unsigned(code.accBytes()));
          else
            code.store(sum, place, code.accBytes());
        }
      });
    }
  });
}

void multiplyAcross(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, Value depth, Value acc,
                    int64_t accStride) {
  int64_t nr = code.plan.nr, lanes = code.plan.lanes;
  Value columns = code.max(b.end[1], code.index(0));
  Value whole = code.mul(code.quotient(columns, nr), code.index(nr));
  code.forEach(code.index(0), whole, nr, [&](Value column) {
    multiplyPanelAcross(code, a, b, depth, column, nr / lanes, false, acc, accStride);
  });
  if (code.hasMasks(b.elementType))
    code.forEach(whole, columns, nr, [&](Value column) {
      auto multiply = [&](int64_t vectors) {
        multiplyPanelAcross(code, a, b, depth, column, vectors, true, acc, accStride);
      };
      if (nr == lanes)
        return multiply(1);
      Value isNarrow = code.atMost(columns, code.add(column, code.index(lanes)));
      code.ifElse(isNarrow, [&] { multiply(1); }, [&] { multiply(nr / lanes); });
    });
}

/// Reduces four vectors over their lanes.
static Value sumsOfFour(DotCode &code, ArrayRef<Value> vectors) {
  auto neighbours = [&](Value x, Value y, int64_t count) -> Value {
    SmallVector<int64_t> even, odd;
    for (int64_t lane = 0; lane < count; lane += 2) {
      even.push_back(lane);
      odd.push_back(lane + 1);
    }
    return arith::AddFOp::create(code.b, vector::ShuffleOp::create(code.b, x, y, even).getResult(),
                                 vector::ShuffleOp::create(code.b, x, y, odd).getResult());
  };
  int64_t lanes = code.plan.lanes;
  Value low = neighbours(vectors[0], vectors[1], 2 * lanes), high = neighbours(vectors[2], vectors[3], 2 * lanes);
  if (lanes == 2)
    return vector::ShuffleOp::create(code.b, low, high, ArrayRef<int64_t>{0, 1, 2, 3});
  Value all = neighbours(low, high, 2 * lanes);
  for (; lanes > 4; lanes /= 2)
    all = neighbours(all, all, lanes);
  return all;
}

void multiplyAlong(DotCode &code, const BoundedOperand &a, const BoundedOperand &b, Value depth, Value acc,
                   int64_t accStride) {
  const DotPlan &plan = code.plan;
  int64_t step = plan.lanes * plan.width();
  Type type = plan.shape.accType;
  VectorType four = code.vectorOf(columnsAlong);
  Value zero = code.index(0), whole = code.mul(code.quotient(depth, step), code.index(step));
  Value lastRow = code.sub(a.end[0], code.index(1)), lastColumn = code.sub(b.end[1], code.index(1));
  bool hasMasks = code.hasMasks(a.elementType) && code.hasMasks(b.elementType);
  Value mask = firstLanes(code, code.sub(depth, whole), step);
  code.forEach(zero, b.end[1], columnsAlong, [&](Value column) {
    SmallVector<Value> columns;
    for (int64_t c = 0; c < columnsAlong; ++c)
      columns.push_back(elementAddress(code, b, zero, code.min(code.add(column, code.index(c)), lastColumn)));
    code.forEach(zero, a.end[0], rowsAlong, [&](Value row) {
      SmallVector<Value> rows, sums(rowsAlong * columnsAlong, zeros(code, code.vectorOf(plan.lanes)));
      for (int64_t r = 0; r < rowsAlong; ++r)
        rows.push_back(elementAddress(code, a, code.min(code.add(row, code.index(r)), lastRow), zero));
      auto addSteps = [&](bool isCut) {
        return [&, isCut](Value k, MutableArrayRef<Value> next) {
          auto load = [&](Value line, Type element) {
            Value at = code.at(line, element, k);
            return isCut ? loadFirstSteps(code, at, element, mask, plan.lanes)
                         : code.loadSteps(at, element, plan.lanes);
          };
          SmallVector<Value> ofColumns;
          for (Value line : columns)
            ofColumns.push_back(load(line, b.elementType));
          for (int64_t r = 0; r < rowsAlong; ++r) {
            Value ofRow = load(rows[r], a.elementType);
            for (int64_t c = 0; c < columnsAlong; ++c)
              next[r * columnsAlong + c] = code.multiplyAdd(ofRow, ofColumns[c], next[r * columnsAlong + c]);
          }
        };
      };
      carry(code, zero, whole, step, sums, addSteps(false));
      if (hasMasks)
        carry(code, whole, depth, step, sums, addSteps(true));
      Value corner = code.at(acc, type, code.add(code.mul(row, code.index(accStride)), column));
      Value isWhole = code.both(code.atMost(code.add(row, code.index(rowsAlong)), a.end[0]),
                                code.atMost(code.add(column, code.index(columnsAlong)), b.end[1]));
      SmallVector<Value> totals;
      for (int64_t r = 0; r < rowsAlong; ++r)
        totals.push_back(sumsOfFour(code, ArrayRef(sums).slice(r * columnsAlong, columnsAlong)));
      auto addWhole = [&] {
        for (int64_t r = 0; r < rowsAlong; ++r) {
          Value place = code.at(corner, type, r * accStride);
          Value old = code.load(four, place, code.accBytes());
          code.store(arith::AddFOp::create(code.b, old, totals[r]), place, code.accBytes());
        }
      };
      auto addPart = [&] {
        for (int64_t r = 0; r < rowsAlong; ++r)
          for (int64_t c = 0; c < columnsAlong; ++c) {
            Value isInside = code.both(isBelow(code, code.add(row, code.index(r)), a.end[0]),
                                       isBelow(code, code.add(column, code.index(c)), b.end[1]));
            code.ifThen(isInside, [&] {
              Value place = code.at(corner, type, r * accStride + c);
              Value one = vector::ExtractOp::create(code.b, totals[r], c);
              one = arith::AddFOp::create(code.b, code.load(type, place, code.accBytes()), one);
              code.store(one, place, code.accBytes());
            });
          }
      };
      code.ifElse(isWhole, addWhole, addPart);
    });
  });
}

} // namespace kpkg::lower::cpu
