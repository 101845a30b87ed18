// Packs blocks of dot operands into panels, in the order in which the microkernel reads them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If a dimension has unit stride and a block lies wholly inside, vectors are copied. If the panel runs along the other
// dimension, they are transposed in registers. Edges use masked loads. Without masked loads, and for general strides,
// each element is tested.
#include "dialect/lower/cpu/DotCode.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace kpkg::lower::cpu {

SmallVector<Value> transpose(DotCode &code, SmallVector<Value> rows) {
  int64_t size = rows.size();
  for (int64_t half = 1; half < size; half *= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < size; ++lane) {
      bool second = (lane & half) != 0;
      low.push_back(second ? size + (lane ^ half) : lane);
      high.push_back(second ? size + lane : lane ^ half);
    }
    for (int64_t row = 0; row < size; ++row)
      if ((row & half) == 0) {
        Value first = rows[row], second = rows[row | half];
        rows[row] = vector::ShuffleOp::create(code.b, first, second, low);
        rows[row | half] = vector::ShuffleOp::create(code.b, first, second, high);
      }
  }
  return rows;
}

Value loadWidened(DotCode &code, Value pointer, Value stride, Type element, int64_t lanes, int64_t width) {
  Value narrow = code.loadLines(pointer, stride, element, lanes);
  if (lanes == width)
    return narrow;
  SmallVector<int64_t> mask;
  for (int64_t lane = 0; lane < width; ++lane)
    mask.push_back(lane < lanes ? lane : 0);
  return vector::ShuffleOp::create(code.b, narrow, narrow, mask);
}

static Value elementAddress(DotCode &code, const BoundedOperand &operand, Value i, Value j) {
  Value offset = code.add(code.mul(i, operand.stride[0]), code.mul(j, operand.stride[1]));
  return code.at(operand.base, operand.elementType, offset);
}

/// Loads element (i, j), or zero outside, converted to accType. For pairs it returns the 16 bits as an integer.
static Value loadChecked(DotCode &code, const BoundedOperand &operand, Value i, Value j) {
  Value inside = code.both(arith::CmpIOp::create(code.b, arith::CmpIPredicate::slt, i, operand.end[0]),
                           arith::CmpIOp::create(code.b, arith::CmpIPredicate::slt, j, operand.end[1]));
  inside = code.both(inside, code.both(code.atMost(operand.begin[0], i), code.atMost(operand.begin[1], j)));
  bool isHalf = code.plan.shape.pairs;
  auto branch = scf::IfOp::create(
      code.b, inside,
      [&](OpBuilder &builder, Location loc) {
        DotCode inner(builder, loc, code.plan);
        Value address = elementAddress(inner, operand, i, j);
        Value value = isHalf ? inner.load(builder.getIntegerType(16), address, 2)
                             : inner.loadConverted(address, operand.elementType, 0);
        scf::YieldOp::create(builder, loc, value);
      },
      [&](OpBuilder &builder, Location loc) {
        Type type = isHalf ? Type(builder.getIntegerType(16)) : code.plan.shape.accType;
        Value zero = arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type));
        scf::YieldOp::create(builder, loc, zero);
      });
  return branch.getResult(0);
}

/// Loads step `step` of line `line`, or zero outside. The depth is dimension `depth`.
static Value loadStepChecked(DotCode &code, const BoundedOperand &operand, int depth, Value line, Value step) {
  auto element = [&](int64_t i) {
    Value at = code.plan.width() == 1 ? step : code.add(code.mul(step, code.index(2)), code.index(i));
    return depth == 0 ? loadChecked(code, operand, at, line) : loadChecked(code, operand, line, at);
  };
  return code.plan.shape.pairs ? code.pairOf(element(0), element(1)) : element(0);
}

/// Returns the first element of a step.
static Value elementOf(DotCode &code, Value step) { return code.mul(step, code.index(code.plan.width())); }

/// Returns how many of the steps [k, k + kSteps) along dimension `depth` lie inside. Returns 0 unless `usable` holds
/// and all of [first, first + count) lies inside the other dimension. Also returns 0 when the operand begins after step
/// k.
static Value insideSteps(DotCode &code, const BoundedOperand &operand, int depth, Value k, Value kSteps, Value first,
                         int64_t count, Value usable) {
  int across = 1 - depth;
  Value inside = code.both(code.atMost(operand.begin[across], first),
                           code.atMost(code.add(first, code.index(count)), operand.end[across]));
  Value element = elementOf(code, k);
  inside = code.both(code.both(inside, usable), code.atMost(operand.begin[depth], element));
  Value steps = code.quotient(code.max(code.index(0), code.sub(operand.end[depth], element)), code.plan.width());
  steps = code.min(kSteps, steps);
  return arith::SelectOp::create(code.b, inside, steps, code.index(0));
}

/// Returns whether the masked packers handle the edge of a panel that begins with step `k` and line `first`.
static Value takesMasks(DotCode &code, const BoundedOperand &operand, int depth, Value k, Value first) {
  Value begins =
      code.both(code.atMost(operand.begin[depth], elementOf(code, k)), code.atMost(operand.begin[1 - depth], first));
  return code.both(begins, code.either(code.isOne(operand.stride[0]), code.isOne(operand.stride[1])));
}

void packRows(DotCode &code, const BoundedOperand &a, Value row, Value rows, Value k, Value kSteps, Value packed) {
  const DotPlan &plan = code.plan;
  int64_t unroll = plan.kUnroll, mr = plan.mr, block = mr * unroll;
  Type type = plan.shape.accType;
  Value alongDepth = code.isOne(a.stride[1]), alongRows = code.isOne(a.stride[0]);
  Value blocks = code.quotient(kSteps, unroll);

  code.forEach(code.index(0), rows, mr, [&](Value panelRow) {
    Value first = code.add(row, panelRow);
    Value panel = code.at(packed, type, code.mul(panelRow, code.index(plan.kc)));
    Value inside = insideSteps(code, a, 1, k, kSteps, first, mr, code.either(alongDepth, alongRows));
    Value insideBlocks = code.quotient(inside, unroll);
    auto copy = [&] {
      code.forEach(code.index(0), insideBlocks, 1, [&](Value q) {
        Value source = elementAddress(code, a, first, elementOf(code, code.add(k, code.mul(q, code.index(unroll)))));
        Value target = code.at(panel, type, code.mul(q, code.index(block)));
        for (int64_t r = 0; r < mr; ++r) {
          Value line = code.at(source, a.elementType, code.mul(code.index(r), a.stride[0]));
          code.store(code.loadSteps(line, a.elementType, unroll), code.at(target, type, r * unroll),
                     code.accBytes() * unroll);
        }
      });
    };
    auto copyTransposed = [&] {
      code.forEach(code.index(0), insideBlocks, 1, [&](Value q) {
        Value source = elementAddress(code, a, first, elementOf(code, code.add(k, code.mul(q, code.index(unroll)))));
        Value target = code.at(panel, type, code.mul(q, code.index(block)));
        for (int64_t r = 0; r < mr; r += unroll) {
          int64_t width = std::min(unroll, mr - r);
          SmallVector<Value> lines;
          for (int64_t step = 0; step < unroll; ++step) {
            Value line = code.at(code.at(source, a.elementType, r), a.elementType,
                                 code.mul(code.index(step * plan.width()), a.stride[1]));
            lines.push_back(loadWidened(code, line, a.stride[1], a.elementType, width, unroll));
          }
          lines = transpose(code, lines);
          for (int64_t i = 0; i < width; ++i)
            code.store(lines[i], code.at(target, type, (r + i) * unroll), code.accBytes() * unroll);
        }
      });
    };
    code.ifElse(alongDepth, copy, [&] { code.ifThen(alongRows, copyTransposed); });
    auto checkEach = [&] {
      code.forEach(insideBlocks, blocks, 1, [&](Value q) {
        Value depth = code.add(k, code.mul(q, code.index(unroll)));
        Value target = code.at(panel, type, code.mul(q, code.index(block)));
        code.forEach(code.index(0), code.index(mr), 1, [&](Value r) {
          code.forEach(code.index(0), code.index(unroll), 1, [&](Value step) {
            Value value = loadStepChecked(code, a, 1, code.add(first, r), code.add(depth, step));
            code.store(value, code.at(target, type, code.add(code.mul(r, code.index(unroll)), step)), code.accBytes());
          });
        });
      });
    };
    if (!code.hasMasks(a.elementType))
      return checkEach();
    code.ifElse(
        takesMasks(code, a, 1, k, first),
        [&] { packRowEdge(code, a, alongDepth, first, k, insideBlocks, blocks, panel); }, checkEach);
  });
}

void packColumns(DotCode &code, const BoundedOperand &b, Value column, Value columns, Value k, Value kSteps,
                 Value packed) {
  const DotPlan &plan = code.plan;
  int64_t nr = plan.nr, lanes = plan.lanes, square = plan.kUnroll;
  Type type = plan.shape.accType;
  Value alongColumns = code.isOne(b.stride[1]), alongDepth = code.isOne(b.stride[0]);
  Value zero = code.index(0);

  // Whole panels inside the operand, and the number of their steps that are inside. A transposed copy works on squares,
  // so its steps are rounded down to whole squares.
  Value usable = code.both(code.either(alongColumns, alongDepth), code.atMost(b.begin[1], column));
  Value insideColumns = code.max(zero, code.min(columns, code.sub(b.end[1], column)));
  insideColumns = code.mul(code.quotient(insideColumns, nr), code.index(nr));
  insideColumns = arith::SelectOp::create(code.b, usable, insideColumns, zero);
  Value element = elementOf(code, k);
  Value inside = code.min(kSteps, code.quotient(code.max(zero, code.sub(b.end[0], element)), plan.width()));
  inside = arith::SelectOp::create(code.b, code.atMost(b.begin[0], element), inside, zero);
  Value done = arith::SelectOp::create(code.b, alongColumns, inside,
                                       code.mul(code.quotient(inside, square), code.index(square)));
  auto target = [&](Value panelColumn, Value step) {
    return code.at(packed, type, code.add(code.mul(panelColumn, code.index(plan.kc)), code.mul(step, code.index(nr))));
  };
  // Copies row by row over all panels, because the rows of B may be pages apart.
  auto copy = [&] {
    code.forEach(zero, done, 1, [&](Value step) {
      code.forEach(zero, insideColumns, nr, [&](Value panelColumn) {
        Value source = elementAddress(code, b, elementOf(code, code.add(k, step)), code.add(column, panelColumn));
        Value line = target(panelColumn, step);
        for (int64_t j = 0; j < nr; j += lanes)
          code.store(code.loadLines(code.at(source, b.elementType, j), b.stride[0], b.elementType, lanes),
                     code.at(line, type, j), plan.unit.vectorBytes);
      });
    });
  };
  auto copyTransposed = [&] {
    code.forEach(zero, insideColumns, nr, [&](Value panelColumn) {
      // Few columns at a time: they are often a multiple of a page apart, and a cache holds few lines at such
      // distances.
      code.forEach(zero, code.index(nr), square, [&](Value j) {
        code.forEach(zero, done, square, [&](Value step) {
          Value first = code.add(code.add(column, panelColumn), j);
          Value source = elementAddress(code, b, elementOf(code, code.add(k, step)), first);
          SmallVector<Value> lines;
          for (int64_t i = 0; i < square; ++i)
            lines.push_back(code.loadSteps(code.at(source, b.elementType, code.mul(code.index(i), b.stride[1])),
                                           b.elementType, square));
          lines = transpose(code, lines);
          Value corner = code.at(target(panelColumn, step), type, j);
          for (int64_t i = 0; i < square; ++i)
            code.store(lines[i], code.at(corner, type, i * nr), code.accBytes() * square);
        });
      });
    });
  };
  code.ifElse(alongColumns, copy, [&] { code.ifThen(alongDepth, copyTransposed); });
  code.forEach(zero, columns, nr, [&](Value panelColumn) {
    Value whole = code.atMost(code.add(panelColumn, code.index(nr)), insideColumns);
    Value from = arith::SelectOp::create(code.b, whole, done, zero), first = code.add(column, panelColumn);
    auto checkEach = [&] {
      code.forEach(from, kSteps, 1, [&](Value step) {
        Value line = target(panelColumn, step);
        code.forEach(zero, code.index(nr), 1, [&](Value j) {
          Value value = loadStepChecked(code, b, 0, code.add(first, j), code.add(k, step));
          code.store(value, code.at(line, type, j), code.accBytes());
        });
      });
    };
    if (!code.hasMasks(b.elementType))
      return checkEach();
    code.ifElse(
        takesMasks(code, b, 0, k, first),
        [&] { packColumnEdge(code, b, alongColumns, first, k, from, kSteps, target(panelColumn, zero)); }, checkEach);
  });
}

} // namespace kpkg::lower::cpu
