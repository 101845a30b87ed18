// Opens packages, and makes views of tensors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ops.h"
#include "memory.h"

#include <filesystem>
#include <stdexcept>

namespace decoder {

namespace {

struct Package {
  std::string name;
  std::vector<std::string> ops;
  bool isForExperts = false;
};

/// The packages of the decoder, with the ops that it calls.
const Package packages[] = {
    {"decoder", {"decoder::convert_", "decoder::fill_", "decoder::apply_sinks_"}},
    {"embedding", {"embedding"}},
    {"norm", {"rms_norm"}},
    {"residual", {"residual_rms_norm"}},
    {"gemm", {"linear"}},
    {"rotary", {"rotary_embedding_", "cache_write_", "rotary_cache_"}},
    {"attention_varlen", {"attention_varlen"}},
    {"attention_cache", {"attention_decode"}},
    {"elementwise", {"silu_and_mul"}},
    {"experts", {"moe_routing"}, true},
    {"moe", {"moe"}, true},
    {"sampling", {"sample"}},
};

} // namespace

Ops::Ops(const std::string &folder, kpkg_device device, bool hasExperts)
    : device(device), stream(device.type == KPKG_DEVICE_CUDA ? streamWithMemory(device) : kpkg::Stream()) {
  registry.setPolicy(kpkg::Policy::Strict).value(); // a slow reference in the place of a kernel is an error
  for (const auto &[name, functions, isForExperts] : packages) {
    if (isForExperts && !hasExperts)
      continue;
    std::string path = folder + "/" + name + ".kpkg";
    if (!std::filesystem::exists(path))
      throw std::runtime_error("package " + path + " is missing: examples/decoder/README.md says how to build it");
    kpkg::Library library = kpkg::Library::open(path).value();
    library.prewarm(device).value(); // graphs cannot contain loading
    registry.add(library).value();
    for (const std::string &function : functions)
      ops.emplace(function, registry.op(function).value());
  }
}

kpkg::Tensor columns(const kpkg::Tensor &matrix, int64_t offset, const std::vector<int64_t> &shape) {
  std::vector<int64_t> extents = {matrix.shape()[0]}, strides = {matrix.strides()[0]};
  int64_t step = 1;
  for (int64_t extent : shape)
    step *= extent;
  for (int64_t extent : shape) {
    extents.push_back(extent);
    strides.push_back(step /= extent);
  }
  char *data = matrix.as<char>() + kpkg_dtype_bytes(int32_t(matrix.dtype()), offset);
  return kpkg::Tensor(data, matrix.dtype(), extents, strides, matrix.device(), matrix.owner());
}

kpkg::Tensor transposed(const kpkg::Tensor &tensor) {
  std::vector<int64_t> shape = tensor.shape(), strides = tensor.strides();
  std::swap(shape[1], shape[2]);
  std::swap(strides[1], strides[2]);
  return kpkg::Tensor(tensor.data(), tensor.dtype(), shape, strides, tensor.device(), tensor.owner());
}

kpkg::Tensor reshaped(const kpkg::Tensor &tensor, std::vector<int64_t> shape) {
  return kpkg::Tensor(tensor.data(), tensor.dtype(), std::move(shape), {}, tensor.device(), tensor.owner());
}

} // namespace decoder
