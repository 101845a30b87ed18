// Packs columns whose lines are strided, a vector of lines at a time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/LinePacking.h"

using namespace mlir;

namespace kpkg::lower::cpu {
namespace {
/// Packs the lines that fill one vector of columns. Contiguous runs of lines are loaded as vectors.
class VectorOfLines {
public:
  /// `corner` is the place of step 0 of line `start` in the panel.
  VectorOfLines(LinePacking &packing, Value start, Value corner)
      : packing(packing), code(packing.code), b(packing.code.b), operand(packing.operand),
        lanes(packing.code.plan.lanes), start(start), corner(corner) {}

  void pack() {
    clearOutside();
    if (code.plan.shape.pairs)
      packHalves();
    Value isWhole = findRuns();
    code.ifElse(isWhole, [&] { loadWhole(); }, [&] { loadParts(); });
  }

private:
  void clearOutside();
  void packHalves();
  Value findRuns();
  void addRun(Value &rest, Value insideBits);
  void loadWhole();
  void loadParts();
  void loadRuns(int64_t runs);
  void loadLanes();

  void store(Value step, Value value) {
    code.store(value, packing.target(corner, step, 0), code.plan.unit.vectorBytes);
  }
  Value i32(int64_t value) { return packing.i32(value); }
  Value withoutLowest(Value bits) { return arith::AndIOp::create(b, bits, arith::SubIOp::create(b, bits, i32(1))); }
  Value below(Value count) { return arith::SubIOp::create(b, arith::ShLIOp::create(b, i32(1), count), i32(1)); }
  Value trailing(Value bits) {
    return LLVM::CountTrailingZerosOp::create(b, b.getI32Type(), bits, /*is_zero_poison=*/false);
  }
  Value isEqual(Value left, Value right) { return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, left, right); }
  /// Returns whether at most `runs` runs exist.
  Value atMostRuns(int64_t runs) {
    Value left = starts;
    for (int64_t run = 0; run < runs; ++run)
      left = withoutLowest(left);
    return isEqual(left, i32(0));
  }

  static constexpr int64_t mostRuns = 4;

  LinePacking &packing;
  DotCode &code;
  ImplicitLocOpBuilder &b;
  const BoundedOperand &operand;
  int64_t lanes;
  Value start, corner;
  Value starts;                   // i32: the lanes at which a run of contiguous lines begins.
  SmallVector<Value> from, masks; // Of each run: the address that lane 0 would have, and the mask of its lanes.
};

/// Stores zeros for the steps that do not lie entirely inside the operand.
void VectorOfLines::clearOutside() {
  auto clear = [&](Value step) { store(step, packing.zero(code.stepsOf(lanes))); };
  code.forEach(code.index(0), packing.first, 1, clear);
  code.forEach(packing.last, packing.kSteps, 1, clear);
}

/// Packs the steps beside the operand's ends, of which one half may be inside.
void VectorOfLines::packHalves() {
  code.forEach(code.index(0), code.index(lanes), 1, [&](Value lane) {
    Value offset = packing.offsetOf(code.add(start, lane)), column = code.at(corner, code.plan.shape.accType, lane);
    auto part = [&](Value step) {
      code.store(packing.partOfStep(offset, step), packing.target(column, step, 0), code.accBytes());
    };
    code.ifThen(packing.isInside(offset), [&] {
      code.forEach(code.max(code.index(0), code.sub(packing.first, code.index(1))), packing.first, 1, part);
      code.forEach(packing.last, code.min(packing.kSteps, code.add(packing.last, code.index(1))), 1, part);
    });
  });
}

/// Sets `starts`, `from` and `masks`. Returns whether all lines are inside and form one run.
Value VectorOfLines::findRuns() {
  VectorType wide = VectorType::get({lanes}, b.getI64Type());
  auto splat = [&](int64_t value) {
    return arith::ConstantOp::create(b, DenseElementsAttr::get(wide, value)).getResult();
  };
  auto number = [&](Value lanesOn) -> Value {
    return arith::ExtUIOp::create(b, b.getI32Type(), LLVM::BitcastOp::create(b, b.getIntegerType(lanes), lanesOn));
  };
  Value table = code.at(operand.lines, b.getI64Type(), start);
  Value own = code.load(wide, table, 8), previous = code.load(wide, code.at(table, b.getI64Type(), -1), 8);
  Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::ne, own, splat(kNoLine));
  Value isNext = isEqual(own, arith::AddIOp::create(b, previous, splat(1)));
  Value insideBits = number(inside),
        nextBits = arith::AndIOp::create(b, number(isNext), i32((int64_t(1) << lanes) - 2));
  starts = arith::AndIOp::create(b, insideBits, arith::XOrIOp::create(b, nextBits, i32(-1)));
  Value isWhole = code.both(isEqual(starts, i32(1)), isEqual(insideBits, i32((int64_t(1) << lanes) - 1)));
  Value rest = starts;
  for (int64_t run = 0; packing.hasMasks() && run < mostRuns; ++run)
    addRun(rest, insideBits);
  return isWhole;
}

/// Adds the run that the lowest bit of `rest` begins, and removes that bit. Without one, the run's mask is empty.
void VectorOfLines::addRun(Value &rest, Value insideBits) {
  Value begin = arith::MinUIOp::create(b, trailing(rest), i32(lanes - 1)); // Any lane, if there is no run.
  Value none = isEqual(rest, i32(0));
  rest = withoutLowest(rest);
  Value end = arith::MinUIOp::create(b, trailing(rest), i32(lanes));
  Value on = arith::AndIOp::create(b, insideBits, arith::XOrIOp::create(b, below(begin), below(end)));
  on = arith::SelectOp::create(b, none, i32(0), on);
  masks.push_back(LLVM::BitcastOp::create(b, VectorType::get({lanes}, b.getI1Type()),
                                          arith::TruncIOp::create(b, b.getIntegerType(lanes), on)));
  Value lane = arith::IndexCastOp::create(b, b.getIndexType(), begin);
  Value offset = packing.offsetOf(code.add(start, lane));
  offset = arith::SelectOp::create(b, none, packing.i64(0), offset);
  offset = arith::SubIOp::create(b, offset, arith::ExtUIOp::create(b, b.getI64Type(), begin));
  from.push_back(packing.place(offset, code.index(0)));
}

/// Loads lines that form one run.
void VectorOfLines::loadWhole() {
  Value offset = packing.offsetOf(start);
  code.forEach(packing.first, packing.last, 1, [&](Value step) {
    store(step, code.loadLines(packing.place(offset, step), packing.stride(), operand.elementType, lanes));
  });
}

/// Loads few runs with masks, else one lane after the other.
void VectorOfLines::loadParts() {
  if (!packing.hasMasks())
    return loadLanes();
  code.ifElse(
      atMostRuns(2), [&] { loadRuns(2); },
      [&] { code.ifElse(atMostRuns(mostRuns), [&] { loadRuns(mostRuns); }, [&] { loadLanes(); }); });
}

void VectorOfLines::loadRuns(int64_t runs) {
  Type element = operand.elementType;
  code.forEach(packing.first, packing.last, 1, [&](Value step) {
    Value distance = code.mul(step, packing.stepStride());
    auto join = [&](Value behind) {
      Value value;
      for (int64_t run = 0; run < runs; ++run)
        value = code.loadMasked(code.at(from[run], element, code.add(distance, behind)), element, masks[run], value);
      return value;
    };
    if (code.plan.shape.pairs)
      store(step, code.pairOf(join(code.index(0)), join(packing.stride())));
    else
      store(step, code.converted(join(code.index(0)), element));
  });
}

void VectorOfLines::loadLanes() {
  Type element = operand.elementType;
  SmallVector<Value> places, strides;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value offset = packing.offsetOf(code.add(start, code.index(lane))), isThere = packing.isInside(offset);
    places.push_back(LLVM::SelectOp::create(b, isThere, packing.place(offset, code.index(0)), operand.nothing));
    strides.push_back(arith::SelectOp::create(b, isThere, packing.stride(), code.index(0)));
  }
  code.forEach(packing.first, packing.last, 1, [&](Value step) {
    for (int64_t lane = 0; lane < lanes; ++lane) {
      Value distance = code.mul(code.mul(step, strides[lane]), code.index(code.plan.width()));
      Value value = code.loadLines(code.at(places[lane], element, distance), strides[lane], element, 0);
      code.store(value, packing.target(corner, step, lane), code.accBytes());
    }
  });
}
} // namespace

/// Packs nr columns from `line` on, a vector of lines at a time.
void LinePacking::columnsAcross(Value line, Value panel) {
  code.forEach(code.index(0), code.index(code.plan.nr), code.plan.lanes, [&](Value j) {
    Value start = code.add(line, j), corner = code.at(panel, code.plan.shape.accType, j);
    VectorOfLines(*this, start, corner).pack();
  });
}

} // namespace kpkg::lower::cpu
