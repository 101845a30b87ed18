// Maps ONNX Runtime's element types to kpkg's dtypes, by their formats.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_ONNXRUNTIME_ELEMENTTYPES_H
#define KPKG_RUNTIME_ONNXRUNTIME_ELEMENTTYPES_H

#include "runtime/onnxruntime/OrtApi.h"

#include <kpkg/dtype.hpp>

#include <array>

namespace kpkg::ort {

/// The format of an element type. `exponentBits` is 0 for all but floats.
struct ElementFormat {
  int number;
  DTypeKind kind;
  int32_t bits, exponentBits;
};

/// The element types that are whole bytes, but for a scale without a sign.
inline constexpr ElementFormat elementFormats[] = {
    {1, DTypeKind::Float, 32, 8},    {2, DTypeKind::Unsigned, 8, 0},   {3, DTypeKind::Signed, 8, 0},
    {4, DTypeKind::Unsigned, 16, 0}, {5, DTypeKind::Signed, 16, 0},    {6, DTypeKind::Signed, 32, 0},
    {7, DTypeKind::Signed, 64, 0},   {9, DTypeKind::Bool, 8, 0},       {10, DTypeKind::Float, 16, 5},
    {11, DTypeKind::Float, 64, 11},  {12, DTypeKind::Unsigned, 32, 0}, {13, DTypeKind::Unsigned, 64, 0},
    {16, DTypeKind::Float, 16, 8},   {17, DTypeKind::Float, 8, 4},     {19, DTypeKind::Float, 8, 5},
};
inline constexpr int lastElementType = 19;

/// Returns the element type of a format, or Undefined.
constexpr ElementType elementType(DTypeKind kind, int32_t bits, int32_t exponentBits) {
  for (const ElementFormat &format : elementFormats)
    if (format.kind == kind && format.bits == bits && format.exponentBits == exponentBits)
      return ElementType(format.number);
  return ElementType::Undefined;
}

/// Returns the element type of a dtype, or Undefined.
constexpr ElementType elementTypeOf(DType dtype) {
  const DTypeRecord &record = dtypeRecord(dtype);
  return elementType(record.kind, record.bits, record.exponentBits);
}

/// Returns the dtype of an element type, or None.
constexpr DType dtypeOf(ElementType type) {
  constexpr auto dtypes = [] {
    std::array<DType, lastElementType + 1> all = {};
    for (const DTypeRecord &record : dtypeRecords)
      if (ElementType found = elementTypeOf(record.dtype); found != ElementType::Undefined)
        all[size_t(found)] = record.dtype;
    return all;
  }();
  return int(type) > 0 && int(type) <= lastElementType ? dtypes[size_t(type)] : DType::None;
}

} // namespace kpkg::ort

#endif // KPKG_RUNTIME_ONNXRUNTIME_ELEMENTTYPES_H
