// Packs dot operands whose lines lie at the offsets of a table, such as windows of convolutions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line runs along the depth. With contiguous elements, panels of rows are copies of parts of lines, and panels of
// columns are transposed in registers. Otherwise the lines are often contiguous with each other, like pixels of an
// image row. Vectors then hold the same step of several lines. A vector of lines that continues in the next row of an
// image consists of a few contiguous runs, each loaded with a mask.
#include "dialect/lower/cpu/LinePacking.h"

using namespace mlir;

namespace kpkg::lower::cpu {

/// Packs mr rows from `line` on, for lines with contiguous elements.
void LinePacking::rowsAlong(Value line, Value panel) {
  int64_t unroll = code.plan.kUnroll, block = code.plan.mr * unroll, alignment = code.accBytes() * unroll;
  Type type = code.plan.shape.accType;
  Value whole = wholeBlocks(unroll), blocks = code.quotient(kSteps, unroll);
  auto [mask, isPart] = partOfBlock(whole, unroll);
  Value behind = behindBlocks(whole, isPart, unroll);
  code.forEach(code.index(0), code.index(code.plan.mr), 1, [&](Value row) {
    Value offset = offsetOf(code.add(line, row));
    Value piece = code.at(panel, type, code.mul(row, code.index(unroll)));
    code.ifElse(
        isInside(offset),
        [&] {
          code.forEach(code.index(0), whole, 1, [&](Value q) {
            Value value = code.loadSteps(place(offset, code.mul(q, code.index(unroll))), operand.elementType, unroll);
            code.store(value, code.at(piece, type, code.mul(q, code.index(block))), alignment);
          });
          if (hasMasks())
            code.ifThen(isPart, [&] {
              Value part = loadPart(place(offset, code.mul(whole, code.index(unroll))), mask);
              code.store(part, code.at(piece, type, code.mul(whole, code.index(block))), alignment);
            });
          auto at = [&](Value step) {
            Value q = code.quotient(step, unroll), rest = code.sub(step, code.mul(q, code.index(unroll)));
            return code.at(piece, type, code.add(code.mul(q, code.index(block)), rest));
          };
          halfOfPair(offset, isPart, at);
          oneByOne(offset, behind, at);
        },
        [&] {
          code.forEach(code.index(0), blocks, 1, [&](Value q) {
            code.store(zero(code.stepsOf(unroll)), code.at(piece, type, code.mul(q, code.index(block))), alignment);
          });
        });
  });
}

/// Packs mr rows from `line` on, for strided lines. Lines that are contiguous with each other are loaded as vectors.
void LinePacking::rowsAcross(Value line, Value panel) {
  int64_t unroll = code.plan.kUnroll, mr = code.plan.mr, block = mr * unroll;
  Type type = code.plan.shape.accType;
  Value none = code.index(0);
  for (int64_t r = 0; r < mr; r += unroll) {
    int64_t width = std::min(unroll, mr - r);
    SmallVector<Value> offsets;
    for (int64_t i = 0; i < width; ++i)
      offsets.push_back(offsetOf(code.add(line, code.index(r + i))));
    Value neighbours = isInside(offsets[0]);
    for (int64_t i = 1; i < width; ++i) {
      Value next = arith::AddIOp::create(code.b, offsets[0], i64(i));
      neighbours = code.both(neighbours, arith::CmpIOp::create(code.b, arith::CmpIPredicate::eq, offsets[i], next));
    }
    Value whole = arith::SelectOp::create(code.b, neighbours, wholeBlocks(unroll), none);
    code.forEach(none, whole, 1, [&](Value q) {
      SmallVector<Value> vectors;
      for (int64_t step = 0; step < unroll; ++step) {
        Value from = place(offsets[0], code.add(code.mul(q, code.index(unroll)), code.index(step)));
        vectors.push_back(loadWidened(code, from, stride(), operand.elementType, width, unroll));
      }
      vectors = transpose(code, vectors);
      for (int64_t i = 0; i < width; ++i)
        code.store(vectors[i],
                   code.at(panel, type, code.add(code.mul(q, code.index(block)), code.index((r + i) * unroll))),
                   code.accBytes() * unroll);
    });
    Value rest = code.mul(whole, code.index(unroll));
    code.forEach(none, code.index(width), 1, [&](Value i) {
      Value row = code.add(code.index(r), i), offset = offsetOf(code.add(line, row));
      auto at = [&](Value step) {
        Value q = code.quotient(step, unroll), in = code.sub(step, code.mul(q, code.index(unroll)));
        return code.at(panel, type,
                       code.add(code.mul(q, code.index(block)), code.add(code.mul(row, code.index(unroll)), in)));
      };
      code.ifElse(
          isInside(offset), [&] { oneByOne(offset, rest, at); },
          [&] {
            code.forEach(rest, kSteps, 1,
                         [&](Value step) { code.store(zero(code.stepType()), at(step), code.accBytes()); });
          });
    });
  }
}

/// Packs nr columns from `line` on, for lines with contiguous elements, by transposing squares in registers.
void LinePacking::columnsAlong(Value line, Value panel) {
  int64_t square = code.plan.kUnroll;
  Type type = code.plan.shape.accType;
  Value whole = wholeBlocks(square), nothing = operand.nothing;
  auto [mask, isPart] = partOfBlock(whole, square);
  Value behind = behindBlocks(whole, isPart, square);
  code.forEach(code.index(0), code.index(code.plan.nr), square, [&](Value j) {
    SmallVector<Value> from, step;
    for (int64_t i = 0; i < square; ++i) {
      Value offset = offsetOf(code.add(line, code.add(j, code.index(i)))), inside = isInside(offset);
      from.push_back(LLVM::SelectOp::create(code.b, inside, place(offset, code.index(0)), nothing));
      step.push_back(arith::SelectOp::create(code.b, inside, code.index(square * code.plan.width()), code.index(0)));
    }
    Value corner = code.at(panel, type, j);
    auto copySquare = [&](Value q, bool isMasked) {
      SmallVector<Value> lines;
      for (int64_t i = 0; i < square; ++i) {
        Value piece = code.at(from[i], operand.elementType, code.mul(q, step[i]));
        lines.push_back(isMasked ? loadPart(piece, mask) : code.loadSteps(piece, operand.elementType, square));
      }
      lines = transpose(code, lines);
      for (int64_t i = 0; i < square; ++i)
        code.store(lines[i], target(corner, code.add(code.mul(q, code.index(square)), code.index(i)), 0),
                   code.accBytes() * square);
    };
    code.forEach(code.index(0), whole, 1, [&](Value q) { copySquare(q, false); });
    if (hasMasks())
      code.ifThen(isPart, [&] { copySquare(whole, true); });
    Value isMore = arith::CmpIOp::create(code.b, arith::CmpIPredicate::slt, behind, kSteps);
    if (code.plan.shape.pairs)
      isMore = code.either(isMore, isPart);
    code.forEach(
        code.index(0), arith::SelectOp::create(code.b, isMore, code.index(square), code.index(0)), 1, [&](Value i) {
          Value offset = offsetOf(code.add(line, code.add(j, i))), column = code.at(corner, type, i);
          auto at = [&](Value step) { return target(column, step, 0); };
          code.ifElse(
              isInside(offset),
              [&] {
                halfOfPair(offset, isPart, at);
                oneByOne(offset, behind, at);
              },
              [&] {
                code.forEach(behind, kSteps, 1,
                             [&](Value step) { code.store(zero(code.stepType()), at(step), code.accBytes()); });
              });
        });
  });
}

void packRowLines(DotCode &code, const BoundedOperand &a, Value row, Value rows, Value k, Value kSteps, Value packed) {
  LinePacking packing(code, a, 1, k, kSteps);
  code.forEach(code.index(0), rows, code.plan.mr, [&](Value panelRow) {
    Value line = code.add(row, panelRow);
    Value panel = code.at(packed, code.plan.shape.accType, code.mul(panelRow, code.index(code.plan.kc)));
    code.ifElse(
        code.isOne(a.stride[1]), [&] { packing.rowsAlong(line, panel); }, [&] { packing.rowsAcross(line, panel); });
  });
}

void packColumnLines(DotCode &code, const BoundedOperand &b, Value column, Value columns, Value k, Value kSteps,
                     Value packed) {
  LinePacking packing(code, b, 0, k, kSteps);
  code.forEach(code.index(0), columns, code.plan.nr, [&](Value panelColumn) {
    Value line = code.add(column, panelColumn);
    Value panel = code.at(packed, code.plan.shape.accType, code.mul(panelColumn, code.index(code.plan.kc)));
    code.ifElse(
        code.isOne(b.stride[0]), [&] { packing.columnsAlong(line, panel); },
        [&] { packing.columnsAcross(line, panel); });
  });
}

} // namespace kpkg::lower::cpu
