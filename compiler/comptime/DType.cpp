// Defines the tables of scalar kinds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/comptime/DType.h"

#include <array>

namespace kpkg::compiler {
namespace {

struct Row {
  std::string_view typeName, valueName;
  unsigned bits;
  DTypeClass cls;
};

constexpr Row rows[] = {
#define DTYPE(enumerator, typeName, valueName, bits, cls) {typeName, valueName, bits, DTypeClass::cls},
#include "compiler/comptime/DType.def"
};

const Row &row(DType type) { return rows[static_cast<size_t>(type)]; }

} // namespace

DTypeClass classOf(DType type) { return row(type).cls; }
unsigned bitsOf(DType type) { return row(type).bits; }
std::string_view typeNameOf(DType type) { return row(type).typeName; }
std::string_view valueNameOf(DType type) { return type == DType::Int ? "int64" : row(type).valueName; }

std::optional<DType> dtypeOfTypeName(std::string_view name) {
  for (size_t i = 0; i < std::size(rows); ++i)
    if (rows[i].typeName == name)
      return static_cast<DType>(i);
  return std::nullopt;
}

std::optional<DType> dtypeOfValueName(std::string_view name) {
  for (size_t i = 0; i < std::size(rows); ++i)
    if (!rows[i].valueName.empty() && rows[i].valueName == name)
      return static_cast<DType>(i);
  return std::nullopt;
}

} // namespace kpkg::compiler
