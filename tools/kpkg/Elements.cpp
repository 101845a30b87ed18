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

/// The upper half of a float.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(double value) {
    uint32_t wide = std::bit_cast<uint32_t>(float(value));
    bits = std::isnan(value) ? 0x7FC0 : uint16_t((wide + 0x7FFF + ((wide >> 16) & 1)) >> 16);
  }
  explicit operator double() const { return std::bit_cast<float>(uint32_t(bits) << 16); }
};

/// Calls `visit` with a value of the type that has this many bits.
template <typename Of8, typename Of16, typename Of32, typename Of64, typename Visit>
auto visitWidth(int32_t bits, Visit visit) {
  return bits == 8 ? visit(Of8()) : bits == 16 ? visit(Of16()) : bits == 32 ? visit(Of32()) : visit(Of64());
}

/// Calls `visit` with a value of the C++ type of a readable dtype.
template <typename Visit> auto visitStored(DType dtype, Visit visit) {
  const DTypeRecord &record = dtypeRecord(dtype);
  if (record.kind == DTypeKind::Signed)
    return visitWidth<int8_t, int16_t, int32_t, int64_t>(record.bits, visit);
  if (record.kind != DTypeKind::Float)
    return visitWidth<uint8_t, uint16_t, uint32_t, uint64_t>(record.bits, visit);
  if (record.exponentBits == 5)
    return visit(_Float16());
  return visitWidth<BFloat16, BFloat16, float, double>(record.bits, visit);
}

} // namespace

bool isReadable(DType dtype) {
  const DTypeRecord &record = dtypeRecord(dtype);
  return record.bits % 8 == 0 && record.bits >= (record.kind == DTypeKind::Float ? 16 : 8);
}

double readElement(DType dtype, const void *address) {
  if (!isReadable(dtype))
    return std::nan("");
  return visitStored(dtype, [&](auto stored) { return readAs<decltype(stored)>(address); });
}

void writeElement(DType dtype, void *address, double value) {
  if (!isReadable(dtype))
    return;
  if (dtype == DType::Bool)
    value = value != 0;
  visitStored(dtype, [&](auto stored) { writeAs<decltype(stored)>(address, value); });
}

void forEachElement(const Tensor &tensor, const std::function<void(void *)> &visit) {
  if (tensor.elements() == 0)
    return;
  const int64_t size = dtypeBytes(tensor.dtype());
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
  bool isRounded = dtypeIsFloat(dtype) && isReadable(dtype);
  return isRounded ? std::ldexp(1, -1 - dtypeRecord(dtype).mantissaBits) : 0;
}

} // namespace kpkg::command
