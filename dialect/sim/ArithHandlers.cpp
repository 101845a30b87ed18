// Handles arith: constants, integer and float arithmetic, comparisons, select.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Elementwise.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

using namespace mlir;
using namespace kpkg::sim;

static llvm::Error constant(Frame &frame, Operation &op) {
  Tile result = Tile::ofType(op.getResult(0).getType());
  auto cellOf = [&](auto value) {
    if constexpr (std::is_same_v<decltype(value), APFloat>) {
      bool inexact;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
      return Cell{.f = value.convertToDouble()};
    } else {
      return Cell{.i = value.getSExtValue()};
    }
  };
  Attribute value = cast<arith::ConstantOp>(op).getValue();
  if (auto number = dyn_cast<FloatAttr>(value)) {
    result.cells[0] = cellOf(number.getValue());
  } else if (auto number = dyn_cast<IntegerAttr>(value)) {
    result.cells[0] = cellOf(number.getValue());
  } else if (auto dense = dyn_cast<DenseElementsAttr>(value)) {
    int64_t i = 0;
    if (isFloat(result.type))
      for (const APFloat &element : dense.getValues<APFloat>())
        result.cells[i++] = cellOf(APFloat(element));
    else
      for (const APInt &element : dense.getValues<APInt>())
        result.cells[i++] = cellOf(APInt(element));
  } else {
    return frame.error(op, "unknown kind of constant");
  }
  frame.set(op.getResult(0), std::move(result));
  return llvm::Error::success();
}

/// Handles an integer op of two operands whose 64-bit result only needs wrapping.
template <uint64_t (*function)(uint64_t, uint64_t)> static llvm::Error wrapping(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<2>(frame, op, [&](Cell a, Cell b) { return Cell{.i = wrapTo(function(a.i, b.i), type)}; });
  return llvm::Error::success();
}

template <int64_t (*function)(int64_t, int64_t)> static llvm::Error onSigned(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<2>(frame, op, [&](Cell a, Cell b) { return Cell{.i = wrapTo(function(a.i, b.i), type)}; });
  return llvm::Error::success();
}

template <uint64_t (*function)(uint64_t, uint64_t)> static llvm::Error onUnsigned(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<2>(frame, op, [&](Cell a, Cell b) {
    return Cell{.i = wrapTo(function(unsignedOf(a.i, type), unsignedOf(b.i, type)), type)};
  });
  return llvm::Error::success();
}

static llvm::Error checkDivisor(Frame &frame, Operation &op, bool isSigned) {
  Type type = elementOf(op.getResult(0));
  const Tile &left = frame.tile(op.getOperand(0)), &right = frame.tile(op.getOperand(1));
  int64_t lowest = wrapTo(int64_t(1) << (integerWidth(type) - 1), type);
  for (int64_t i = 0; i < left.size(); ++i) {
    if (right.cells[i].i == 0)
      return frame.error(op, "division by zero");
    if (isSigned && right.cells[i].i == -1 && left.cells[i].i == lowest)
      return frame.error(op, "division overflows");
  }
  return llvm::Error::success();
}

template <int64_t (*function)(int64_t, int64_t)> static llvm::Error divideSigned(Frame &frame, Operation &op) {
  if (llvm::Error bad = checkDivisor(frame, op, true))
    return bad;
  return onSigned<function>(frame, op);
}

template <uint64_t (*function)(uint64_t, uint64_t)> static llvm::Error divideUnsigned(Frame &frame, Operation &op) {
  if (llvm::Error bad = checkDivisor(frame, op, false))
    return bad;
  return onUnsigned<function>(frame, op);
}

/// Handles shifts. A shift by the width or more is poison; here it returns the result of shifting bit by bit.
template <typename Function> static llvm::Error shift(Frame &frame, Operation &op, Function function) {
  Type type = elementOf(op.getResult(0));
  uint64_t width = integerWidth(type);
  mapCells<2>(frame, op, [&](Cell a, Cell b) {
    uint64_t amount = unsignedOf(b.i, type);
    return Cell{.i = wrapTo(function(a.i, std::min<uint64_t>(amount, 63), amount >= width, type), type)};
  });
  return llvm::Error::success();
}

static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a == b ? (std::signbit(a) ? b : a) : std::max(a, b);
}
static double minimum(double a, double b) { return -maximum(-a, -b); }

static bool compare(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
    using enum arith::CmpFPredicate;
  case AlwaysFalse:
    return false;
  case OEQ:
    return a == b;
  case OGT:
    return a > b;
  case OGE:
    return a >= b;
  case OLT:
    return a < b;
  case OLE:
    return a <= b;
  case ONE:
    return !unordered && a != b;
  case ORD:
    return !unordered;
  case UEQ:
    return unordered || a == b;
  case UGT:
    return unordered || a > b;
  case UGE:
    return unordered || a >= b;
  case ULT:
    return unordered || a < b;
  case ULE:
    return unordered || a <= b;
  case UNE:
    return unordered || a != b;
  case UNO:
    return unordered;
  case AlwaysTrue:
    return true;
  }
  llvm_unreachable("all predicates are listed");
}

static llvm::Error compareFloats(Frame &frame, Operation &op) {
  arith::CmpFPredicate predicate = cast<arith::CmpFOp>(op).getPredicate();
  mapCells<2>(frame, op, [&](Cell a, Cell b) { return Cell{.i = -int64_t(compare(predicate, a.f, b.f))}; });
  return llvm::Error::success();
}

static llvm::Error compareIntegers(Frame &frame, Operation &op) {
  arith::CmpIPredicate predicate = cast<arith::CmpIOp>(op).getPredicate();
  Type type = elementOf(op.getOperand(0));
  mapCells<2>(frame, op, [&](Cell a, Cell b) {
    return Cell{.i = -int64_t(arith::applyCmpPredicate(predicate, APInt(integerWidth(type), unsignedOf(a.i, type)),
                                                       APInt(integerWidth(type), unsignedOf(b.i, type))))};
  });
  return llvm::Error::success();
}

static llvm::Error select(Frame &frame, Operation &op) {
  if (!isa<ShapedType>(op.getOperand(0).getType())) { // One condition for a whole tile.
    Tile chosen = frame.tile(op.getOperand(frame.integer(op.getOperand(0)) ? 1 : 2));
    frame.set(op.getResult(0), std::move(chosen));
    return llvm::Error::success();
  }
  mapCells<3>(frame, op, [](Cell condition, Cell a, Cell b) { return condition.i ? a : b; });
  return llvm::Error::success();
}

void kpkg::sim::addArithHandlers(HandlerTable &table) {
  table["arith.constant"] = constant;
  table["arith.cmpf"] = compareFloats;
  table["arith.cmpi"] = compareIntegers;
  table["arith.select"] = select;

  table["arith.addi"] = wrapping<[](uint64_t a, uint64_t b) { return a + b; }>;
  table["arith.subi"] = wrapping<[](uint64_t a, uint64_t b) { return a - b; }>;
  table["arith.muli"] = wrapping<[](uint64_t a, uint64_t b) { return a * b; }>;
  table["arith.andi"] = wrapping<[](uint64_t a, uint64_t b) { return a & b; }>;
  table["arith.ori"] = wrapping<[](uint64_t a, uint64_t b) { return a | b; }>;
  table["arith.xori"] = wrapping<[](uint64_t a, uint64_t b) { return a ^ b; }>;
  table["arith.maxsi"] = onSigned<[](int64_t a, int64_t b) { return std::max(a, b); }>;
  table["arith.minsi"] = onSigned<[](int64_t a, int64_t b) { return std::min(a, b); }>;
  table["arith.maxui"] = onUnsigned<[](uint64_t a, uint64_t b) { return std::max(a, b); }>;
  table["arith.minui"] = onUnsigned<[](uint64_t a, uint64_t b) { return std::min(a, b); }>;

  table["arith.divsi"] = divideSigned<[](int64_t a, int64_t b) { return a / b; }>;
  table["arith.remsi"] = divideSigned<[](int64_t a, int64_t b) { return a % b; }>;
  table["arith.floordivsi"] = divideSigned<[](int64_t a, int64_t b) { return a / b - (a % b && (a < 0) != (b < 0)); }>;
  table["arith.ceildivsi"] = divideSigned<[](int64_t a, int64_t b) { return a / b + (a % b && (a < 0) == (b < 0)); }>;
  table["arith.divui"] = divideUnsigned<[](uint64_t a, uint64_t b) { return a / b; }>;
  table["arith.remui"] = divideUnsigned<[](uint64_t a, uint64_t b) { return a % b; }>;
  table["arith.ceildivui"] = divideUnsigned<[](uint64_t a, uint64_t b) { return a / b + (a % b != 0); }>;
  table["arith.shli"] = [](Frame &frame, Operation &op) {
    return shift(frame, op, [](int64_t a, uint64_t by, bool out, Type) { return out ? 0 : uint64_t(a) << by; });
  };
  table["arith.shrsi"] = [](Frame &frame, Operation &op) {
    return shift(frame, op, [](int64_t a, uint64_t by, bool, Type) { return a >> by; });
  };
  table["arith.shrui"] = [](Frame &frame, Operation &op) {
    return shift(frame, op,
                 [](int64_t a, uint64_t by, bool out, Type type) { return out ? 0 : unsignedOf(a, type) >> by; });
  };

  table["arith.addf"] = binaryFloat<[](double a, double b) { return a + b; }>;
  table["arith.subf"] = binaryFloat<[](double a, double b) { return a - b; }>;
  table["arith.mulf"] = binaryFloat<[](double a, double b) { return a * b; }>;
  table["arith.divf"] = binaryFloat<[](double a, double b) { return a / b; }>;
  table["arith.remf"] = binaryFloat<[](double a, double b) { return std::fmod(a, b); }>;
  table["arith.maximumf"] = binaryFloat<maximum>;
  table["arith.minimumf"] = binaryFloat<minimum>;
  table["arith.maxnumf"] =
      binaryFloat<[](double a, double b) { return std::isnan(a)   ? b
                                                  : std::isnan(b) ? a
                                                                  : maximum(a, b); }>;
  table["arith.minnumf"] =
      binaryFloat<[](double a, double b) { return std::isnan(a)   ? b
                                                  : std::isnan(b) ? a
                                                                  : minimum(a, b); }>;
  table["arith.negf"] = unaryFloat<[](double a) { return -a; }>;
}
