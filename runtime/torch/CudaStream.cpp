// Finds PyTorch's current CUDA stream at run time.
//
// Its function is in the CUDA part of PyTorch, which this library cannot link, because most machines do not have it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/torch/CudaStream.h"

#include <dlfcn.h>
#include <stdexcept>
#include <string>

namespace kpkg::torch_abi {

using GetStream = int32_t (*)(int32_t device, void **stream);

static GetStream findGetStream() {
  constexpr const char *symbol = "aoti_torch_get_current_cuda_stream";
  void *library = ::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
  void *found = library ? ::dlsym(library, symbol) : nullptr;
  return reinterpret_cast<GetStream>(found ? found : ::dlsym(RTLD_DEFAULT, symbol));
}

void *currentCudaStream(int32_t device) {
  static const GetStream getStream = findGetStream();
  void *stream = nullptr;
  if (!getStream || getStream(device, &stream) != 0)
    throw std::runtime_error("PyTorch gives no CUDA stream for device " + std::to_string(device));
  return stream;
}

} // namespace kpkg::torch_abi
