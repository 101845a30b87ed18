// Declares dtypes by number and by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdint>
#include <string_view>

namespace kpkg::plan {

enum class DType : uint8_t {
  none = 0,
#define KPKG_DTYPE(name, text, number, bytes, isFloat) name = number,
#include "runtime/plan/DTypes.def"
};
inline constexpr unsigned dtypeCount = 16;

/// Returns the bytes of one element; 0 for `none` and for invalid numbers.
constexpr int64_t dtypeBytes(DType type) {
  switch (type) {
#define KPKG_DTYPE(name, text, number, bytes, isFloat)                                                                 \
  case DType::name:                                                                                                    \
    return bytes;
#include "runtime/plan/DTypes.def"
  default:
    return 0;
  }
}

constexpr bool dtypeIsFloat(DType type) {
  switch (type) {
#define KPKG_DTYPE(name, text, number, bytes, isFloat)                                                                 \
  case DType::name:                                                                                                    \
    return isFloat;
#include "runtime/plan/DTypes.def"
  default:
    return false;
  }
}

/// Returns a name such as "float32"; "none" for invalid numbers.
constexpr std::string_view dtypeName(DType type) {
  switch (type) {
#define KPKG_DTYPE(name, text, number, bytes, isFloat)                                                                 \
  case DType::name:                                                                                                    \
    return text;
#include "runtime/plan/DTypes.def"
  default:
    return "none";
  }
}

/// Returns `none` if there is no dtype of this name.
constexpr DType dtypeFromName(std::string_view name) {
  for (unsigned i = 1; i < dtypeCount; ++i)
    if (dtypeName(static_cast<DType>(i)) == name)
      return static_cast<DType>(i);
  return DType::none;
}

} // namespace kpkg::plan
