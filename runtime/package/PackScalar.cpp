// Packs scalars as kernel argument words.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/PlannedCall.h"

#include <bit>
#include <cmath>
#include <limits>

namespace kpkg::package {

using plan::DType;

/// Rounds to nearest even in a format of `exponentBits` and `mantissaBits`. Numbers beyond the largest finite one
/// become infinity if the format has one, else NaN.
static uint64_t toSmallFloat(double value, int exponentBits, int mantissaBits, bool hasInfinity) {
  uint64_t sign = std::signbit(value) ? uint64_t(1) << (exponentBits + mantissaBits) : 0;
  int bias = (1 << (exponentBits - 1)) - 1;
  uint64_t infinity = ((uint64_t(1) << exponentBits) - 1) << mantissaBits;
  // Formats without infinity have one NaN, with all bits set.
  uint64_t nan =
      hasInfinity ? infinity | uint64_t(1) << (mantissaBits - 1) : infinity | ((uint64_t(1) << mantissaBits) - 1);
  if (std::isnan(value))
    return sign | nan;
  double magnitude = std::fabs(value);
  if (magnitude == 0)
    return sign;
  if (std::isinf(magnitude))
    return sign | (hasInfinity ? infinity : nan);
  // The unit in the last place at this magnitude, at least that of subnormals. The division is exact.
  int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  double rounded = std::nearbyint(std::ldexp(magnitude, mantissaBits - exponent));
  // `rounded` includes the hidden bit, so the addition carries into the exponent if it rounds up to the next power of
  // two.
  uint64_t bits = (uint64_t(exponent + bias - 1) << mantissaBits) + uint64_t(rounded);
  uint64_t first = hasInfinity ? infinity : nan;
  return sign | std::min(bits, first);
}

/// Rounds to the exponent of a float32, as PyTorch does: halves up, but those of the smallest number down. The sign is
/// dropped. Infinities become NaN.
static uint64_t toExponent(double value) {
  uint32_t magnitude = std::bit_cast<uint32_t>(float(value)) & 0x7fffffff;
  uint32_t half = magnitude < 0x00800000 ? 0x003fffff : 0x00400000;
  return std::min<uint32_t>((magnitude + half) >> 23, 0xff);
}

int64_t packScalar(double value, DType dtype) {
  const DTypeRecord &record = dtypeRecord(dtype);
  switch (record.kind) {
  case DTypeKind::Float:
    if (record.bits == 64)
      return std::bit_cast<int64_t>(value);
    if (record.bits == 32)
      return int64_t(std::bit_cast<uint32_t>(float(value)));
    if (record.mantissaBits == 0)
      return int64_t(toExponent(value));
    return int64_t(toSmallFloat(value, record.exponentBits, record.mantissaBits, record.hasInfinity));
  case DTypeKind::Bool:
    return value != 0;
  case DTypeKind::None:
  case DTypeKind::Signed:
  case DTypeKind::Unsigned:
    break;
  }
  // Out-of-range values are meaningless for an integer, but must not cause undefined behaviour.
  if (!(value >= -9223372036854775808.0 && value < 9223372036854775808.0))
    return std::numeric_limits<int64_t>::min();
  return int64_t(value);
}

int64_t packScalar(int64_t value, DType dtype) {
  if (plan::dtypeIsFloat(dtype))
    return packScalar(double(value), dtype);
  return dtype == DType::Bool ? value != 0 : value;
}

} // namespace kpkg::package
