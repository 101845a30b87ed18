// Runs kernels of a loaded image as launches of a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_CUDAEXECUTABLE_H
#define KPKG_CUDA_CUDAEXECUTABLE_H

#include "runtime/device/Launch.h"

namespace kpkg::cuda {

/// A loaded image, which stays loaded beyond it, because graphs may refer to it.
class CudaExecutable : public device::Executable {
public:
  CudaExecutable(void *image, int32_t device, int64_t multiprocessors)
      : image(image), device(device), multiprocessors(multiprocessors) {}
  Result<std::unique_ptr<const device::Kernel>> kernel(const device::KernelDescription &description) override;

private:
  void *image;
  int32_t device;
  int64_t multiprocessors;
};

} // namespace kpkg::cuda
#endif
