// Finds PyTorch's current CUDA stream.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_RUNTIME_TORCH_CUDASTREAM_H
#define KPKG_RUNTIME_TORCH_CUDASTREAM_H

#include <cstdint>

namespace kpkg::torch_abi {

/// Returns the stream on which PyTorch queues this thread's work for the device. Throws std::runtime_error in a PyTorch
/// without CUDA.
void *currentCudaStream(int32_t device);

} // namespace kpkg::torch_abi

#endif // KPKG_RUNTIME_TORCH_CUDASTREAM_H
