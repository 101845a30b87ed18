// Implements rounding and the memory representation of every element type.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/sim/Number.h"
#include "dialect/tile/ir/ElementBytes.h"
#include <bit>
#include <cmath>
#include <cstring>

using namespace mlir;
using namespace kpkg::sim;

namespace {
/// A binary float format narrower than f32: bits of exponent and mantissa, and whether it has infinities.
struct NarrowFormat {
  int exponentBits, mantissaBits;
  bool hasInfinity;

  int bias() const { return (1 << (exponentBits - 1)) - 1; }
  int minExponent() const { return 1 - bias(); }
  /// Returns the largest finite value. Without infinities, only the all-ones mantissa of the top exponent is NaN.
  double max() const {
    return hasInfinity ? std::ldexp(2.0 - std::ldexp(1.0, -mantissaBits), bias())
                       : std::ldexp(2.0 - std::ldexp(1.0, 1 - mantissaBits), bias() + 1);
  }
  uint32_t nan() const { // Quiet, positive.
    uint32_t exponent = ((1u << exponentBits) - 1) << mantissaBits;
    return hasInfinity ? exponent | (1u << (mantissaBits - 1)) : exponent | ((1u << mantissaBits) - 1);
  }
};

NarrowFormat formatOf(Type type) {
  const llvm::fltSemantics &semantics = cast<FloatType>(type).getFloatSemantics();
  int mantissaBits = int(llvm::APFloat::semanticsPrecision(semantics)) - 1; // without the hidden bit
  int bits = int(type.getIntOrFloatBitWidth());
  return {bits - 1 - mantissaBits, mantissaBits, llvm::APFloat::semanticsHasInf(semantics)};
}

double roundNarrow(double value, NarrowFormat format) {
  if (std::isnan(value) || value == 0)
    return value;
  double overflow = format.hasInfinity ? std::copysign(INFINITY, value) : NAN;
  if (std::isinf(value))
    return overflow;
  int exponent = std::max(std::ilogb(value), format.minExponent());
  int quantum = exponent - format.mantissaBits;
  double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -quantum)), quantum);
  return std::abs(rounded) > format.max() ? overflow : rounded;
}

uint32_t encodeNarrow(double value, NarrowFormat format) {
  uint32_t sign = std::signbit(value) ? 1u << (format.exponentBits + format.mantissaBits) : 0;
  double magnitude = std::abs(value);
  if (std::isnan(value))
    return format.nan();
  if (magnitude == 0)
    return sign;
  if (std::isinf(value))
    return sign | (((1u << format.exponentBits) - 1) << format.mantissaBits);
  int exponent = std::max(std::ilogb(magnitude), format.minExponent());
  // For normal numbers the hidden bit carries into the exponent field; subnormal numbers have none.
  auto mantissa = static_cast<uint32_t>(std::ldexp(magnitude, format.mantissaBits - exponent));
  return sign | (mantissa + (static_cast<uint32_t>(exponent - format.minExponent()) << format.mantissaBits));
}

double decodeNarrow(uint32_t bits, NarrowFormat format) {
  uint32_t mantissaMask = (1u << format.mantissaBits) - 1;
  uint32_t exponentMask = (1u << format.exponentBits) - 1;
  uint32_t exponent = (bits >> format.mantissaBits) & exponentMask, mantissa = bits & mantissaMask;
  double sign = (bits >> (format.exponentBits + format.mantissaBits)) & 1 ? -1.0 : 1.0;
  if (exponent == exponentMask && format.hasInfinity)
    return mantissa ? NAN : sign * INFINITY;
  if (exponent == exponentMask && mantissa == mantissaMask)
    return NAN;
  if (exponent == 0)
    return sign * std::ldexp(mantissa, format.minExponent() - format.mantissaBits);
  return sign *
         std::ldexp(mantissa + mantissaMask + 1, static_cast<int>(exponent) - format.bias() - format.mantissaBits);
}
} // namespace

unsigned kpkg::sim::integerWidth(Type type) { return type.isIndex() ? 64 : type.getIntOrFloatBitWidth(); }

int64_t kpkg::sim::storageSize(Type type) { return tile::elementBytes(type); }

double kpkg::sim::roundTo(double value, Type type) {
  if (type.isF64())
    return value;
  if (type.isF32())
    return static_cast<float>(value);
  return roundNarrow(value, formatOf(type));
}

int64_t kpkg::sim::wrapTo(int64_t value, Type type) {
  unsigned unused = 64 - integerWidth(type);
  return static_cast<int64_t>(static_cast<uint64_t>(value) << unused) >> unused;
}

uint64_t kpkg::sim::unsignedOf(int64_t value, Type type) {
  unsigned unused = 64 - integerWidth(type);
  return static_cast<uint64_t>(value) << unused >> unused;
}

template <typename T> static T readAs(const char *memory) {
  T value;
  std::memcpy(&value, memory, sizeof(T));
  return value;
}

template <typename T> static void writeAs(char *memory, T value) { std::memcpy(memory, &value, sizeof(T)); }

Cell kpkg::sim::loadCell(const char *memory, Type type) {
  Cell cell;
  if (type.isF64())
    cell.f = readAs<double>(memory);
  else if (type.isF32())
    cell.f = readAs<float>(memory);
  else if (isFloat(type))
    cell.f = decodeNarrow(storageSize(type) == 1 ? readAs<uint8_t>(memory) : readAs<uint16_t>(memory), formatOf(type));
  else if (type.isInteger(1))
    cell.i = -static_cast<int64_t>(readAs<uint8_t>(memory) != 0);
  else if (storageSize(type) == 1)
    cell.i = readAs<int8_t>(memory);
  else if (storageSize(type) == 2)
    cell.i = readAs<int16_t>(memory);
  else if (storageSize(type) == 4)
    cell.i = readAs<int32_t>(memory);
  else
    cell.i = readAs<int64_t>(memory);
  return cell;
}

void kpkg::sim::storeCell(char *memory, Cell cell, Type type) {
  if (type.isF64())
    writeAs<double>(memory, cell.f);
  else if (type.isF32())
    writeAs<float>(memory, static_cast<float>(cell.f));
  else if (isFloat(type) && storageSize(type) == 1)
    writeAs<uint8_t>(memory, static_cast<uint8_t>(encodeNarrow(cell.f, formatOf(type))));
  else if (isFloat(type))
    writeAs<uint16_t>(memory, static_cast<uint16_t>(encodeNarrow(cell.f, formatOf(type))));
  else if (type.isInteger(1))
    writeAs<uint8_t>(memory, cell.i & 1);
  else if (storageSize(type) == 1)
    writeAs<int8_t>(memory, static_cast<int8_t>(cell.i));
  else if (storageSize(type) == 2)
    writeAs<int16_t>(memory, static_cast<int16_t>(cell.i));
  else if (storageSize(type) == 4)
    writeAs<int32_t>(memory, static_cast<int32_t>(cell.i));
  else
    writeAs<int64_t>(memory, cell.i);
}
