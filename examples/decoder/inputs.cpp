// Lays out the inputs of a step in one block of memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "inputs.h"

#include <algorithm>

namespace decoder {

using kpkg::DType;

static DType dtypeOf(int field) {
  switch (field) {
  case Inputs::Starts:
  case Inputs::Lengths:
  case Inputs::Table:
  case Inputs::TopK:
    return DType::Int32;
  case Inputs::Temperature:
  case Inputs::TopP:
  case Inputs::LogProbs:
    return DType::Float32;
  default:
    return DType::Int64;
  }
}

Inputs::Inputs(const Ops &ops, int64_t tokens, int64_t sequences, int64_t mostPages) : ops(ops) {
  constexpr int64_t alignment = 64;
  for (int field = 0; field < Count; ++field) {
    shapes[field] = {field <= Slots ? tokens : sequences};
    if (field == Starts)
      ++shapes[field][0];
    if (field == Table)
      shapes[field].push_back(mostPages);
    int64_t count = shapes[field][0] * (field == Table ? mostPages : 1);
    int64_t bytes = kpkg_dtype_bytes(int32_t(dtypeOf(field)), count);
    offsets[field + 1] = offsets[field] + (bytes + alignment - 1) / alignment * alignment;
  }
  memory = kpkg::Tensor::empty(DType::UInt8, {offsets[Count]});
  onDevice = ops.isOnGpu() ? ops.empty(DType::UInt8, {offsets[Count]}) : memory;
  std::fill_n(memory.as<char>(), offsets[Count], char(0));
  std::fill_n(host<int64_t>(Slots), tokens, -1);
  std::fill_n(host<float>(TopP), sequences, 1.0f);
}

kpkg::Tensor Inputs::operator[](Field field) const {
  return kpkg::Tensor(onDevice.as<char>() + offsets[field], dtypeOf(field), shapes[field], {}, ops.device,
                      onDevice.owner());
}

void Inputs::upload() {
  if (ops.isOnGpu())
    kpkg::Status::from(kpkg_memory_copy(ops.device, onDevice.data(), kpkg::Cpu, memory.data(), size_t(offsets[Drawn]),
                                        ops.stream.handle))
        .value();
}

const int64_t *Inputs::drawn() {
  if (ops.isOnGpu())
    kpkg::Status::from(kpkg_memory_copy(kpkg::Cpu, host<int64_t>(Drawn), ops.device,
                                        onDevice.as<char>() + offsets[Drawn],
                                        size_t(offsets[LogProbs] - offsets[Drawn]), ops.stream.handle))
        .value();
  return host<int64_t>(Drawn);
}

} // namespace decoder
