// Packs dot operands whose lines lie at the offsets of a table, such as windows of convolutions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A line runs along the depth. With contiguous elements, panels of rows are copies of parts of lines, and panels of
// columns are transposed in registers. Otherwise the lines are often contiguous with each other, like pixels of an
// image row. Vectors then hold the same step of several lines. A vector of lines that continues in the next row of an
// image consists of a few contiguous runs, each loaded with a mask.
#include "dialect/lower/cpu/DotCode.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace kpkg::lower::cpu {
namespace {

struct LinePacking {
  DotCode &code;
  const BoundedOperand &operand;
  int depth; // The operand's dimension of the depth.
  Value k, kSteps;
  Value first, last; // The steps of [0, kSteps) that lie entirely inside the operand.

  LinePacking(DotCode &code, const BoundedOperand &operand, int depth, Value k, Value kSteps)
      : code(code), operand(operand), depth(depth), k(k), kSteps(kSteps) {
    auto stepOf = [&](Value element) { return code.quotient(code.max(element, code.index(0)), code.plan.width()); };
    auto clamp = [&](Value step, Value least) { return code.min(code.max(code.sub(step, k), least), kSteps); };
    first = clamp(stepOf(code.add(operand.begin[depth], code.index(code.plan.width() - 1))), code.index(0));
    last = clamp(stepOf(operand.end[depth]), first);
  }

  Value stride() { return operand.stride[depth]; }
  Value i64(int64_t value) { return arith::ConstantOp::create(code.b, code.b.getI64IntegerAttr(value)); }
  Value i32(int64_t value) { return arith::ConstantOp::create(code.b, code.b.getI32IntegerAttr(value)); }
  Value offsetOf(Value line) {
    return code.load(code.b.getI64Type(), code.at(operand.lines, code.b.getI64Type(), line), 8);
  }
  Value isInside(Value offset) { return arith::CmpIOp::create(code.b, arith::CmpIPredicate::ne, offset, i64(kNoLine)); }
  Value zero(Type type) { return arith::ConstantOp::create(code.b, code.b.getZeroAttr(type)); }
  Value elementOf(Value step) { return code.mul(code.add(k, step), code.index(code.plan.width())); }
  /// Returns the distance between the elements of consecutive steps.
  Value stepStride() { return code.mul(stride(), code.index(code.plan.width())); }
  /// Returns the address of step `step` of the line at `offset`.
  Value place(Value offset, Value step) {
    Value line =
        code.at(operand.base, operand.elementType, arith::IndexCastOp::create(code.b, code.b.getIndexType(), offset));
    return code.at(line, operand.elementType, code.mul(elementOf(step), stride()));
  }
  /// Returns the number of whole blocks of `size` steps inside the operand, counted from the first step.
  Value wholeBlocks(int64_t size) {
    Value begins = arith::CmpIOp::create(code.b, arith::CmpIPredicate::eq, first, code.index(0));
    return arith::SelectOp::create(code.b, begins, code.quotient(last, size), code.index(0));
  }
  bool hasMasks() { return code.hasMasks(operand.elementType); }
  /// Returns the mask of the steps of the partial block behind the whole blocks, and whether there is one. Needs masked
  /// loads.
  std::pair<Value, Value> partOfBlock(Value whole, int64_t size) {
    Value count = code.sub(last, code.mul(whole, code.index(size)));
    Value begins = arith::CmpIOp::create(code.b, arith::CmpIPredicate::eq, first, code.index(0));
    Value isPart =
        code.both(begins, code.both(code.atMost(code.index(1), count), code.atMost(count, code.index(size - 1))));
    SmallVector<int32_t> numbers;
    for (int64_t lane = 0; lane < size; ++lane)
      numbers.push_back(lane);
    auto vector = VectorType::get({size}, code.b.getI32Type());
    Value lanes = arith::ConstantOp::create(code.b, DenseElementsAttr::get(vector, ArrayRef<int32_t>(numbers)));
    Value end = vector::BroadcastOp::create(code.b, vector,
                                            arith::IndexCastOp::create(code.b, code.b.getI32Type(), count).getResult());
    return {arith::CmpIOp::create(code.b, arith::CmpIPredicate::slt, lanes, end), isPart};
  }
  /// Loads the contiguous steps that `mask` selects.
  Value loadPart(Value place, Value mask) {
    if (code.plan.shape.pairs)
      return code.loadMasked(place, code.b.getI32Type(), mask, Value());
    return code.converted(code.loadMasked(place, operand.elementType, mask, Value()), operand.elementType);
  }
  /// Returns the first step behind the whole blocks and, with masked loads, behind the partial block.
  Value behindBlocks(Value whole, Value isPart, int64_t size) {
    Value blocks =
        hasMasks() ? code.add(whole, arith::IndexCastUIOp::create(code.b, code.b.getIndexType(), isPart)) : whole;
    return code.mul(blocks, code.index(size));
  }
  /// Loads a step of the line at `offset` of which a part may lie outside.
  Value partOfStep(Value offset, Value step) {
    if (!code.plan.shape.pairs)
      return zero(code.plan.shape.accType);
    Value halves[2];
    for (int64_t i = 0; i < 2; ++i) {
      Value element = code.add(elementOf(step), code.index(i));
      Value isThere = code.both(code.atMost(operand.begin[depth], element),
                                code.atMost(code.add(element, code.index(1)), operand.end[depth]));
      Value place = code.at(this->place(offset, step), operand.elementType, code.mul(code.index(i), stride()));
      halves[i] =
          code.load(code.b.getIntegerType(16), LLVM::SelectOp::create(code.b, isThere, place, operand.nothing), 2);
    }
    return code.pairOf(halves[0], halves[1]);
  }
  /// Copies the steps from `begin` on of the line at `offset` one by one, with zeros outside. `target` returns a step's
  /// address.
  void oneByOne(Value offset, Value begin, llvm::function_ref<Value(Value)> target) {
    auto store = [&](Value step, Value value) { code.store(value, target(step), code.accBytes()); };
    Value from = code.max(begin, first);
    auto part = [&](Value step) { store(step, partOfStep(offset, step)); };
    code.forEach(begin, code.min(from, kSteps), 1, part);
    code.forEach(from, last, 1, [&](Value step) {
      store(step, code.loadLines(place(offset, step), stride(), operand.elementType, 0));
    });
    code.forEach(code.max(from, last), kSteps, 1, part);
  }

  /// Copies the step of the partial block of which only one half is inside.
  void halfOfPair(Value offset, Value isPart, llvm::function_ref<Value(Value)> target) {
    if (!code.plan.shape.pairs)
      return;
    Value isHalf = code.both(isPart, code.atMost(code.add(elementOf(last), code.index(1)), operand.end[depth]));
    isHalf = code.both(isHalf, code.atMost(code.add(last, code.index(1)), kSteps));
    code.ifThen(isHalf, [&] { code.store(partOfStep(offset, last), target(last), code.accBytes()); });
  }

  void rowsAlong(Value line, Value panel);
  void rowsAcross(Value line, Value panel);
  void columnsAlong(Value line, Value panel);
  void columnsAcross(Value line, Value panel);
  Value target(Value panel, Value step, int64_t column) {
    return code.at(code.at(panel, code.plan.shape.accType, code.mul(step, code.index(code.plan.nr))),
                   code.plan.shape.accType, column);
  }
};

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

/// Packs nr columns from `line` on, a vector of lines at a time. Contiguous runs of lines are loaded as vectors.
void LinePacking::columnsAcross(Value line, Value panel) {
  int64_t lanes = code.plan.lanes;
  ImplicitLocOpBuilder &b = code.b;
  Type type = code.plan.shape.accType, element = operand.elementType, bits = b.getIntegerType(lanes);
  VectorType wide = VectorType::get({lanes}, b.getI64Type()), mask = VectorType::get({lanes}, b.getI1Type());
  auto splat = [&](int64_t value) {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(wide, value)).getResult();
  };
  auto number = [&](Value lanesOn) -> Value {
    return arith::ExtUIOp::create(b, b.getI32Type(), LLVM::BitcastOp::create(b, bits, lanesOn));
  };
  auto below = [&](Value count) -> Value {
    return arith::SubIOp::create(b, arith::ShLIOp::create(b, i32(1), count), i32(1));
  };
  auto trailing = [&](Value value) -> Value {
    return LLVM::CountTrailingZerosOp::create(b, b.getI32Type(), value, /*is_zero_poison=*/false);
  };

  code.forEach(code.index(0), code.index(code.plan.nr), lanes, [&](Value j) {
    Value start = code.add(line, j), corner = code.at(panel, type, j);
    auto store = [&](Value step, Value value) {
      code.store(value, target(corner, step, 0), code.plan.unit.vectorBytes);
    };
    auto nothing = [&](Value step) { store(step, zero(code.stepsOf(lanes))); };
    code.forEach(code.index(0), first, 1, nothing);
    code.forEach(last, kSteps, 1, nothing);
    if (code.plan.shape.pairs) { // One half of a pair may be inside.
      code.forEach(code.index(0), code.index(lanes), 1, [&](Value lane) {
        Value offset = offsetOf(code.add(start, lane)), column = code.at(corner, type, lane);
        auto part = [&](Value step) { code.store(partOfStep(offset, step), target(column, step, 0), code.accBytes()); };
        code.ifThen(isInside(offset), [&] {
          code.forEach(code.max(code.index(0), code.sub(first, code.index(1))), first, 1, part);
          code.forEach(last, code.min(kSteps, code.add(last, code.index(1))), 1, part);
        });
      });
    }

    Value table = code.at(operand.lines, b.getI64Type(), start);
    Value own = code.load(wide, table, 8), previous = code.load(wide, code.at(table, b.getI64Type(), -1), 8);
    Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, own, splat(kNoLine));
    Value isNext =
        arith::CmpIOp::create(b, arith::CmpIPredicate::eq, own, arith::AddIOp::create(b, previous, splat(1)));
    Value insideBits = number(inside),
          nextBits = arith::AndIOp::create(b, number(isNext), i32((int64_t(1) << lanes) - 2));
    Value starts = arith::AndIOp::create(b, insideBits, arith::XOrIOp::create(b, nextBits, i32(-1)));
    Value isWhole =
        code.both(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, starts, i32(1)),
                  arith::CmpIOp::create(b, arith::CmpIPredicate::eq, insideBits, i32((int64_t(1) << lanes) - 1)));
    // For each run of contiguous lines: the address that lane 0 of the run would have, and the mask of its lanes.
    constexpr int64_t mostRuns = 4;
    SmallVector<Value> from, masks;
    Value rest = starts;
    for (int64_t run = 0; hasMasks() && run < mostRuns; ++run) {
      Value begin = arith::MinUIOp::create(b, trailing(rest), i32(lanes - 1)); // Any lane, if there is no run.
      Value none = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, rest, i32(0));
      rest = arith::AndIOp::create(b, rest, arith::SubIOp::create(b, rest, i32(1)));
      Value end = arith::MinUIOp::create(b, trailing(rest), i32(lanes));
      Value on = arith::AndIOp::create(b, insideBits, arith::XOrIOp::create(b, below(begin), below(end)));
      on = arith::SelectOp::create(b, none, i32(0), on);
      masks.push_back(LLVM::BitcastOp::create(b, mask, arith::TruncIOp::create(b, bits, on)));
      Value lane = arith::IndexCastOp::create(b, b.getIndexType(), begin);
      Value offset = offsetOf(code.add(start, lane));
      offset = arith::SelectOp::create(b, none, i64(0), offset);
      offset = arith::SubIOp::create(b, offset, arith::ExtUIOp::create(b, b.getI64Type(), begin));
      from.push_back(place(offset, code.index(0)));
    }
    auto loadRuns = [&](int64_t runs) {
      code.forEach(first, last, 1, [&](Value step) {
        Value distance = code.mul(step, stepStride());
        auto join = [&](Value behind) {
          Value value;
          for (int64_t run = 0; run < runs; ++run)
            value =
                code.loadMasked(code.at(from[run], element, code.add(distance, behind)), element, masks[run], value);
          return value;
        };
        if (code.plan.shape.pairs)
          store(step, code.pairOf(join(code.index(0)), join(stride())));
        else
          store(step, code.converted(join(code.index(0)), element));
      });
    };
    auto loadLanes = [&] {
      SmallVector<Value> places, strides;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        Value offset = offsetOf(code.add(start, code.index(lane))), isThere = isInside(offset);
        places.push_back(LLVM::SelectOp::create(b, isThere, place(offset, code.index(0)), operand.nothing));
        strides.push_back(arith::SelectOp::create(b, isThere, stride(), code.index(0)));
      }
      code.forEach(first, last, 1, [&](Value step) {
        for (int64_t lane = 0; lane < lanes; ++lane) {
          Value distance = code.mul(code.mul(step, strides[lane]), code.index(code.plan.width()));
          Value value = code.loadLines(code.at(places[lane], element, distance), strides[lane], element, 0);
          code.store(value, target(corner, step, lane), code.accBytes());
        }
      });
    };
    auto loadWhole = [&] {
      Value offset = offsetOf(start);
      code.forEach(first, last, 1,
                   [&](Value step) { store(step, code.loadLines(place(offset, step), stride(), element, lanes)); });
    };
    auto atMostRuns = [&](int64_t runs) { // No run starts after that many.
      Value left = starts;
      for (int64_t run = 0; run < runs; ++run)
        left = arith::AndIOp::create(b, left, arith::SubIOp::create(b, left, i32(1)));
      return Value(arith::CmpIOp::create(b, arith::CmpIPredicate::eq, left, i32(0)));
    };
    auto loadParts = [&] {
      if (!hasMasks())
        return loadLanes();
      code.ifElse(
          atMostRuns(2), [&] { loadRuns(2); },
          [&] { code.ifElse(atMostRuns(mostRuns), [&] { loadRuns(mostRuns); }, loadLanes); });
    };
    code.ifElse(isWhole, loadWhole, loadParts);
  });
}

} // namespace

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
