// Declares the scalar kinds of the language and their properties.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::compiler {

/// One kind of scalar. `Int` (64-bit, used for sizes and indices) is distinct from `Int64` (an element type).
enum class DType : uint8_t {
  Int, ///< has no row in the table of dtypes: its dtype value is `int64`
#define KPKG_DTYPE_ROW(constant, Type, ...) Type,
#include "runtime/include/kpkg/dtypes.def"
};

enum class DTypeClass : uint8_t { Bool, Signed, Unsigned, Float };

DTypeClass classOf(DType type);
/// Returns the bits of an element in memory.
unsigned bitsOf(DType type);
/// Returns the type's name in source: `Float32`.
std::string_view typeNameOf(DType type);
/// Returns the dtype value's name: `float32`; `int64` for Int, which shares the storage.
std::string_view valueNameOf(DType type);
std::optional<DType> dtypeOfTypeName(std::string_view name);
std::optional<DType> dtypeOfValueName(std::string_view name);
/// Returns the names of all types, `Int` first.
std::vector<std::string> dtypeTypeNames();
/// Returns the largest finite value of a float type that cannot hold all of float32; nothing for other types.
std::optional<double> largestNarrowFloat(DType type);

inline bool isFloat(DType type) { return classOf(type) == DTypeClass::Float; }
/// Returns whether kernels only convert values of this float type, without arithmetic.
inline bool isFloatForStorage(DType type) { return isFloat(type) && bitsOf(type) == 8; }
/// Returns whether this float type has neither zero nor sign. Its values are only converted, not even compared.
inline bool isExponent(DType type) { return type == DType::Float8_e8m0fnu; }
/// Returns whether this type exists only as fields of integers, which kernels unpack.
inline bool isPacked(DType type) { return bitsOf(type) < 8; }
inline bool isInteger(DType type) {
  return classOf(type) == DTypeClass::Signed || classOf(type) == DTypeClass::Unsigned;
}
inline bool isSigned(DType type) { return classOf(type) == DTypeClass::Signed; }
inline bool isUnsigned(DType type) { return classOf(type) == DTypeClass::Unsigned; }

} // namespace kpkg::compiler
