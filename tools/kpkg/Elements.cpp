// Accesses elements of host tensors of any dtype as doubles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/Elements.h"
#include <bit>
#include <cmath>
#include <cstring>

namespace kpkg::command {

namespace {

template <typename T> double readAs(const void *address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return double(value);
}
template <typename T> void writeAs(void *address, double value) {
  T narrow = T(value);
  std::memcpy(address, &narrow, sizeof narrow);
}

/// Reads a bfloat16, the upper half of a float.
double readBFloat16(const void *address) {
  uint16_t bits;
  std::memcpy(&bits, address, sizeof bits);
  return std::bit_cast<float>(uint32_t(bits) << 16);
}
void writeBFloat16(void *address, double value) {
  uint32_t bits = std::bit_cast<uint32_t>(float(value));
  uint16_t upper = std::isnan(value) ? 0x7FC0 : uint16_t((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  std::memcpy(address, &upper, sizeof upper);
}

} // namespace

bool isReadable(DType dtype) { return dtype != DType::None && dtype <= DType::Float64; }

double readElement(DType dtype, const void *address) {
  switch (dtype) {
  case DType::Bool:
    return readAs<uint8_t>(address);
  case DType::Int8:
    return readAs<int8_t>(address);
  case DType::Int16:
    return readAs<int16_t>(address);
  case DType::Int32:
    return readAs<int32_t>(address);
  case DType::Int64:
    return readAs<int64_t>(address);
  case DType::UInt8:
    return readAs<uint8_t>(address);
  case DType::UInt16:
    return readAs<uint16_t>(address);
  case DType::UInt32:
    return readAs<uint32_t>(address);
  case DType::UInt64:
    return readAs<uint64_t>(address);
  case DType::Float16:
    return readAs<_Float16>(address);
  case DType::BFloat16:
    return readBFloat16(address);
  case DType::Float32:
    return readAs<float>(address);
  case DType::Float64:
    return readAs<double>(address);
  default:
    return std::nan("");
  }
}

void writeElement(DType dtype, void *address, double value) {
  switch (dtype) {
  case DType::Bool:
    return writeAs<uint8_t>(address, value != 0);
  case DType::Int8:
    return writeAs<int8_t>(address, value);
  case DType::Int16:
    return writeAs<int16_t>(address, value);
  case DType::Int32:
    return writeAs<int32_t>(address, value);
  case DType::Int64:
    return writeAs<int64_t>(address, value);
  case DType::UInt8:
    return writeAs<uint8_t>(address, value);
  case DType::UInt16:
    return writeAs<uint16_t>(address, value);
  case DType::UInt32:
    return writeAs<uint32_t>(address, value);
  case DType::UInt64:
    return writeAs<uint64_t>(address, value);
  case DType::Float16:
    return writeAs<_Float16>(address, value);
  case DType::BFloat16:
    return writeBFloat16(address, value);
  case DType::Float32:
    return writeAs<float>(address, value);
  case DType::Float64:
    return writeAs<double>(address, value);
  default:
    return;
  }
}

void forEachElement(const Tensor &tensor, const std::function<void(void *)> &visit) {
  if (tensor.elements() == 0)
    return;
  const auto size = int64_t(kpkg_dtype_size(int32_t(tensor.dtype())));
  std::vector<int64_t> index(tensor.shape().size(), 0);
  char *address = tensor.as<char>();
  while (true) {
    visit(address);
    size_t dim = index.size();
    while (dim-- > 0) {
      address += tensor.strides()[dim] * size;
      if (++index[dim] < tensor.shape()[dim])
        break;
      address -= tensor.strides()[dim] * size * tensor.shape()[dim];
      index[dim] = 0;
    }
    if (dim == size_t(-1))
      return;
  }
}

double unitRoundoff(DType dtype) {
  switch (dtype) {
  case DType::Float64:
    return 0x1p-53;
  case DType::Float32:
    return 0x1p-24;
  case DType::Float16:
    return 0x1p-11;
  case DType::BFloat16:
    return 0x1p-8;
  default:
    return 0;
  }
}

} // namespace kpkg::command
