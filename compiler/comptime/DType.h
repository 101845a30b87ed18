// Declares the scalar kinds of the language and their properties.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace kpkg::compiler {

/// One kind of scalar. `Int` (64-bit, used for sizes and indices) is distinct from `Int64` (an element type).
enum class DType : uint8_t {
#define DTYPE(enumerator, typeName, valueName, bits, cls) enumerator,
#include "compiler/comptime/DType.def"
};

enum class DTypeClass : uint8_t { Bool, Signed, Unsigned, Float };

DTypeClass classOf(DType type);
unsigned bitsOf(DType type);
/// Returns the type's name in source: `Float32`.
std::string_view typeNameOf(DType type);
/// Returns the dtype value's name: `float32`; `int64` for Int, which shares the storage.
std::string_view valueNameOf(DType type);
std::optional<DType> dtypeOfTypeName(std::string_view name);
std::optional<DType> dtypeOfValueName(std::string_view name);

inline bool isFloat(DType type) { return classOf(type) == DTypeClass::Float; }
inline bool isInteger(DType type) {
  return classOf(type) == DTypeClass::Signed || classOf(type) == DTypeClass::Unsigned;
}
inline bool isSigned(DType type) { return classOf(type) == DTypeClass::Signed; }
inline bool isUnsigned(DType type) { return classOf(type) == DTypeClass::Unsigned; }

} // namespace kpkg::compiler
