// Copies weights to their place on the device, and converts them there.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "weights.h"

namespace decoder {

kpkg::Tensor Weights::joined(const std::vector<Part> &parts, const std::vector<int64_t> &rest) {
  std::vector<int64_t> shape = {0};
  shape.insert(shape.end(), rest.begin(), rest.end());
  for (const Part &part : parts)
    shape[0] += part.rows;
  // The first error comes before memory is allocated.
  std::vector<const StoredTensor *> sources;
  for (const Part &part : parts) {
    std::vector<int64_t> expected = shape;
    expected[0] = part.rows;
    sources.push_back(checkpoint ? &checkpoint->tensor(part.name, expected) : nullptr);
  }
  kpkg::Tensor whole = ops.empty(dtype, shape);
  placed += kpkg_dtype_bytes(int32_t(dtype), whole.elements());
  if (!checkpoint) {
    ops.all("decoder::fill_", {reshaped(whole, {whole.elements()})}, {{"scale", 0.02}, {"seed", seed++}});
    return whole;
  }
  char *place = whole.as<char>();
  for (const StoredTensor *source : sources) {
    int64_t count = 1;
    for (int64_t extent : source->shape)
      count *= extent;
    bool isSame = source->dtype == dtype;
    kpkg::Tensor target(place, dtype, {count}, {}, ops.device, whole.owner());
    kpkg::Tensor raw = isSame ? target : ops.empty(source->dtype, {count});
    kpkg::Status::from(
        kpkg_memory_copy(ops.device, raw.data(), kpkg::Cpu, source->data, source->bytes, ops.stream.handle))
        .value();
    if (!isSame)
      ops.all("decoder::convert_", {raw, target});
    place += kpkg_dtype_bytes(int32_t(dtype), count);
  }
  return whole;
}

kpkg::Tensor Weights::tensor(const std::string &name, const std::vector<int64_t> &shape) {
  return joined({{name, shape[0]}}, {shape.begin() + 1, shape.end()});
}

} // namespace decoder
