// Declares DType and its properties, from the table in dtypes.def.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DTYPE_HPP
#define KPKG_DTYPE_HPP

#include <cstdint>
#include <string_view>

namespace kpkg {

/// A dtype. The values are those of kpkg_dtype.
enum class DType : int32_t {
  None = 0,
#define KPKG_DTYPE_ROW(constant, Type, name, code, ...) Type = code,
#include "dtypes.def"
  // Earlier spellings.
  Float8E4M3FN = Float8_e4m3fn,
  Float8E5M2 = Float8_e5m2
};

enum class DTypeKind : uint8_t { None, Bool, Signed, Unsigned, Float };

/// One row of the table of dtypes.
struct DTypeRecord {
  DType dtype;
  std::string_view name;
  int32_t bits; ///< of an element in memory
  DTypeKind kind;
  int32_t exponentBits, mantissaBits; ///< of floats; otherwise 0
  bool hasInfinity;
  uint8_t dlpackCode;
  bool isInNumpy; ///< without the package ml_dtypes
};

/// All dtypes, each at the index of its number. The first one is None.
inline constexpr DTypeRecord dtypeRecords[] = {
    {DType::None, "none", 0, DTypeKind::None, 0, 0, false, 0, false},
#define KPKG_DTYPE_ROW(constant, Type, name, code, bits, kind, exponent, mantissa, infinity, dlpack, numpy, ...)       \
  {DType::Type, #name, bits, DTypeKind::kind, exponent, mantissa, infinity != 0, dlpack, numpy != 0},
#include "dtypes.def"
};
/// The number of dtypes, None included.
inline constexpr int32_t dtypeCount = int32_t(sizeof dtypeRecords / sizeof dtypeRecords[0]);

/// Returns the row of `dtype`; that of None for invalid numbers.
constexpr const DTypeRecord &dtypeRecord(DType dtype) {
  bool isKnown = int32_t(dtype) > 0 && int32_t(dtype) < dtypeCount;
  return dtypeRecords[isKnown ? int32_t(dtype) : 0];
}

/// Returns a name such as "float32"; "none" for invalid numbers. A null character follows it.
constexpr std::string_view dtypeName(DType dtype) { return dtypeRecord(dtype).name; }
/// Returns the bits of one element in memory; 0 for None and for invalid numbers.
constexpr int32_t dtypeBits(DType dtype) { return dtypeRecord(dtype).bits; }
constexpr bool dtypeIsFloat(DType dtype) { return dtypeRecord(dtype).kind == DTypeKind::Float; }

/// Returns the bytes of `elements` elements side by side, rounded up. One size for whole tensors, offsets and strides:
/// only dtypes below 8 bits round.
constexpr int64_t dtypeBytes(DType dtype, int64_t elements = 1) {
  int64_t bits = dtypeBits(dtype);
  return bits % 8 == 0 ? elements * (bits / 8) : (elements * bits + 7) >> 3;
}

/// Returns None if there is no dtype of this name.
constexpr DType dtypeFromName(std::string_view name) {
  for (int32_t i = 1; i < dtypeCount; ++i)
    if (dtypeRecords[i].name == name)
      return dtypeRecords[i].dtype;
  return DType::None;
}

/// Returns the first dtype of this kind and size, or None.
constexpr DType dtypeOfNumber(DTypeKind kind, int32_t bits) {
  for (const DTypeRecord &record : dtypeRecords)
    if (record.kind == kind && record.bits == bits)
      return record.dtype;
  return DType::None;
}

namespace detail {
constexpr bool areDtypesNumbered() {
  for (int32_t i = 0; i < dtypeCount; ++i)
    if (int32_t(dtypeRecords[i].dtype) != i)
      return false;
  return true;
}
} // namespace detail
static_assert(detail::areDtypesNumbered(), "codes of dtypes.def count from 1 without gaps");

} // namespace kpkg

#endif // KPKG_DTYPE_HPP
