// Declares memory of zeros, which tensor maps of absent views describe.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CUDA_ZEROS_H
#define KPKG_DEVICE_CUDA_ZEROS_H

#include "runtime/device/cuda/Driver.h"

namespace kpkg::cuda {

/// Returns the address of 16 zero bytes on the device, which is current. Loads them on first use.
Result<uint64_t> zeros(int32_t device);

} // namespace kpkg::cuda
#endif
