// Handles math: functions of floats, computed in double and rounded, and functions of integers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Elementwise.h"
#include <bit>
#include <cmath>

using namespace mlir;
using namespace kpkg::sim;

/// Compiled code may differ from the rounded value by this many units in the last place of f32 (f64).
static constexpr double kUlps = 4;

/// Handles a function that hardware and libraries compute with a small error.
template <double (*function)(double)> static llvm::Error approximate(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  double error = 2 * kUlps * Frame::roundoff(type);
  mapCells<1>(frame, op, [&](Cell a) {
    double value = function(a.f);
    return Cell{.f = frame.result(frame.inexact(value, error * std::abs(value)), type)};
  });
  return llvm::Error::success();
}

template <double (*function)(double, double)> static llvm::Error approximate2(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  double error = 2 * kUlps * Frame::roundoff(type);
  mapCells<2>(frame, op, [&](Cell a, Cell b) {
    double value = function(a.f, b.f);
    return Cell{.f = frame.result(frame.inexact(value, error * std::abs(value)), type)};
  });
  return llvm::Error::success();
}

static llvm::Error fusedMultiplyAdd(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<3>(frame, op, [&](Cell a, Cell b, Cell c) {
    bool wide = frame.options.inDouble || type.isF64();
    double value = wide ? std::fma(a.f, b.f, c.f)
                        : std::fma(static_cast<float>(a.f), static_cast<float>(b.f), static_cast<float>(c.f));
    return Cell{.f = frame.result(value, type)};
  });
  return llvm::Error::success();
}

template <bool (*test)(double)> static llvm::Error testFloat(Frame &frame, Operation &op) {
  mapCells<1>(frame, op, [](Cell a) { return Cell{.i = -int64_t(test(a.f))}; });
  return llvm::Error::success();
}

/// Handles an integer function of the value's bits and its width.
template <int64_t (*function)(uint64_t, int)> static llvm::Error countBits(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<1>(frame, op,
              [&](Cell a) { return Cell{.i = wrapTo(function(unsignedOf(a.i, type), integerWidth(type)), type)}; });
  return llvm::Error::success();
}

static llvm::Error absoluteInteger(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<1>(frame, op, [&](Cell a) { return Cell{.i = wrapTo(a.i < 0 ? int64_t(0 - uint64_t(a.i)) : a.i, type)}; });
  return llvm::Error::success();
}

static llvm::Error integerPower(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  for (Cell exponent : frame.tile(op.getOperand(1)).cells)
    if (exponent.i < 0)
      return frame.error(op, "negative exponent of an integer power");
  mapCells<2>(frame, op, [&](Cell base, Cell exponent) {
    uint64_t power = 1, square = base.i;
    for (uint64_t left = exponent.i; left; left >>= 1, square *= square)
      power *= left & 1 ? square : 1;
    return Cell{.i = wrapTo(power, type)};
  });
  return llvm::Error::success();
}

static llvm::Error floatToIntegerPower(Frame &frame, Operation &op) {
  Type type = elementOf(op.getResult(0));
  mapCells<2>(frame, op, [&](Cell a, Cell b) {
    double value = std::pow(a.f, double(b.i));
    return Cell{.f = frame.result(frame.inexact(value, 2 * kUlps * Frame::roundoff(type) * std::abs(value)), type)};
  });
  return llvm::Error::success();
}

void kpkg::sim::addMathHandlers(HandlerTable &table) {
  table["math.absf"] = unaryFloat<[](double a) { return std::abs(a); }>;
  table["math.exp"] = approximate<[](double a) { return std::exp(a); }>;
  table["math.exp2"] = approximate<[](double a) { return std::exp2(a); }>;
  table["math.expm1"] = approximate<[](double a) { return std::expm1(a); }>;
  table["math.log"] = approximate<[](double a) { return std::log(a); }>;
  table["math.log2"] = approximate<[](double a) { return std::log2(a); }>;
  table["math.log10"] = approximate<[](double a) { return std::log10(a); }>;
  table["math.log1p"] = approximate<[](double a) { return std::log1p(a); }>;
  table["math.sqrt"] = unaryFloat<[](double a) { return std::sqrt(a); }>;
  table["math.rsqrt"] = approximate<[](double a) { return 1.0 / std::sqrt(a); }>;
  table["math.cbrt"] = approximate<[](double a) { return std::cbrt(a); }>;
  table["math.sin"] = approximate<[](double a) { return std::sin(a); }>;
  table["math.cos"] = approximate<[](double a) { return std::cos(a); }>;
  table["math.tan"] = approximate<[](double a) { return std::tan(a); }>;
  table["math.tanh"] = approximate<[](double a) { return std::tanh(a); }>;
  table["math.atan"] = approximate<[](double a) { return std::atan(a); }>;
  table["math.erf"] = approximate<[](double a) { return std::erf(a); }>;
  table["math.floor"] = unaryFloat<[](double a) { return std::floor(a); }>;
  table["math.ceil"] = unaryFloat<[](double a) { return std::ceil(a); }>;
  table["math.trunc"] = unaryFloat<[](double a) { return std::trunc(a); }>;
  table["math.round"] = unaryFloat<[](double a) { return std::round(a); }>;
  table["math.roundeven"] = unaryFloat<[](double a) { return std::nearbyint(a); }>;
  table["math.powf"] = approximate2<[](double a, double b) { return std::pow(a, b); }>;
  table["math.atan2"] = approximate2<[](double a, double b) { return std::atan2(a, b); }>;
  table["math.copysign"] = binaryFloat<[](double a, double b) { return std::copysign(a, b); }>;
  table["math.fma"] = fusedMultiplyAdd;
  table["math.fpowi"] = floatToIntegerPower;
  table["math.isnan"] = testFloat<[](double a) { return std::isnan(a); }>;
  table["math.isinf"] = testFloat<[](double a) { return std::isinf(a); }>;
  table["math.isfinite"] = testFloat<[](double a) { return std::isfinite(a); }>;
  table["math.absi"] = absoluteInteger;
  table["math.ipowi"] = integerPower;
  table["math.ctpop"] = countBits<[](uint64_t a, int) -> int64_t { return std::popcount(a); }>;
  table["math.ctlz"] = countBits<[](uint64_t a, int width) -> int64_t { return std::countl_zero(a) - (64 - width); }>;
  table["math.cttz"] = countBits<[](uint64_t a, int width) -> int64_t { return std::min(std::countr_zero(a), width); }>;
}
