// Handles arith conversions between element types.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace kpkg::sim;

/// Converts floats. Widening is exact; narrowing rounds once, from the exact value.
static llvm::Error convertFloat(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<1>(frame, op, [&](Cell a) { return Cell{.f = frame.options.inDouble ? a.f : roundTo(a.f, type)}; });
  return llvm::Error::success();
}

static llvm::Error signedToFloat(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<1>(frame, op, [&](Cell a) {
    // Converts directly to f32: through double, an int64 would be rounded twice.
    double value = type.isF64() || frame.options.inDouble ? static_cast<double>(a.i) : static_cast<float>(a.i);
    return Cell{.f = frame.result(value, type)};
  });
  return llvm::Error::success();
}

static llvm::Error unsignedToFloat(Frame &frame, Operation &op) {
  Type from = elementOf(op.getOperand(0)), type = elementOf(op.getResult(0));
  mapCells<1>(frame, op, [&](Cell a) {
    uint64_t source = unsignedOf(a.i, from);
    double value = type.isF64() || frame.options.inDouble ? static_cast<double>(source) : static_cast<float>(source);
    return Cell{.f = frame.result(value, type)};
  });
  return llvm::Error::success();
}

/// Truncates towards zero. A result out of range is poison; here it saturates, and NaN becomes 0.
static int64_t saturate(double value, double low, double high, int64_t lowest, int64_t highest) {
  if (std::isnan(value))
    return 0;
  value = std::trunc(value);
  return value < low ? lowest : value >= high ? highest : static_cast<int64_t>(value);
}

static llvm::Error floatToSigned(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  unsigned width = integerWidth(type);
  double high = std::ldexp(1.0, width - 1);
  int64_t highest = static_cast<int64_t>(~uint64_t(0) >> (65 - width));
  mapCells<1>(frame, op, [&](Cell a) { return Cell{.i = saturate(a.f, -high, high, ~highest, highest)}; });
  return llvm::Error::success();
}

static llvm::Error floatToUnsigned(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  double high = std::ldexp(1.0, integerWidth(type));
  mapCells<1>(frame, op, [&](Cell a) {
    double value = std::trunc(a.f);
    uint64_t integer = !(value > 0) ? 0 : value >= high ? ~uint64_t(0) : static_cast<uint64_t>(value);
    return Cell{.i = wrapTo(integer, type)};
  });
  return llvm::Error::success();
}

static llvm::Error signedToInteger(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<1>(frame, op, [&](Cell a) { return Cell{.i = wrapTo(a.i, type)}; });
  return llvm::Error::success();
}

static llvm::Error unsignedToInteger(Frame &frame, Operation &op) {
  Type from = elementOf(op.getOperand(0)), type = elementOf(op.getResult(0));
  mapCells<1>(frame, op, [&](Cell a) { return Cell{.i = wrapTo(unsignedOf(a.i, from), type)}; });
  return llvm::Error::success();
}

static llvm::Error bitcast(Frame &frame, Operation &op) {
  Type from = elementOf(op.getOperand(0)), to = elementOf(op.getResult(0));
  if (frame.options.inDouble && (isFloat(from) || isFloat(to)))
    return frame.error(op, "bits of floats have no meaning in a run in double precision");
  mapCells<1>(frame, op, [&](Cell a) {
    char bits[8];
    storeCell(bits, a, from);
    return loadCell(bits, to);
  });
  return llvm::Error::success();
}

void kpkg::sim::addConversionHandlers(HandlerTable &table) {
  table["arith.extf"] = convertFloat;
  table["arith.truncf"] = convertFloat;
  table["arith.sitofp"] = signedToFloat;
  table["arith.uitofp"] = unsignedToFloat;
  table["arith.fptosi"] = floatToSigned;
  table["arith.fptoui"] = floatToUnsigned;
  table["arith.extsi"] = signedToInteger;
  table["arith.trunci"] = signedToInteger;
  table["arith.index_cast"] = signedToInteger;
  table["arith.extui"] = unsignedToInteger;
  table["arith.index_castui"] = unsignedToInteger;
  table["arith.bitcast"] = bitcast;
}
