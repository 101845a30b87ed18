// Defines the tables of scalar kinds.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/comptime/DType.h"

#include <cmath>
#include <iterator>

namespace kpkg::compiler {
namespace {

struct Row {
  std::string_view typeName, valueName;
  unsigned bits;
  DTypeClass cls;
  int exponentBits, mantissaBits;
  bool hasInfinity;
};

constexpr Row rows[] = {
    {"Int", "", 64, DTypeClass::Signed, 0, 0, false},
#define KPKG_DTYPE_ROW(constant, Type, name, code, bits, kind, exponent, mantissa, infinity, ...)                      \
  {#Type, #name, bits, DTypeClass::kind, exponent, mantissa, infinity != 0},
#include "runtime/include/kpkg/dtypes.def"
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

std::vector<std::string> dtypeTypeNames() {
  std::vector<std::string> names;
  for (const Row &row : rows)
    names.emplace_back(row.typeName);
  return names;
}

std::optional<double> largestNarrowFloat(DType type) {
  const Row &format = row(type);
  constexpr int exponentBitsOfFloat32 = 8;
  if (format.cls != DTypeClass::Float || format.exponentBits >= exponentBitsOfFloat32)
    return std::nullopt;
  // Without infinities, finite values use the topmost exponent too, with all mantissas but the last one.
  int exponent = (1 << (format.exponentBits - 1)) - (format.hasInfinity ? 1 : 0);
  return std::ldexp(2 - std::ldexp(1, (format.hasInfinity ? 0 : 1) - format.mantissaBits), exponent);
}

} // namespace kpkg::compiler
