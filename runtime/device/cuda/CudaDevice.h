// Declares NVIDIA's GPUs as devices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_CUDADEVICE_H
#define KPKG_CUDA_CUDADEVICE_H

#include "runtime/device/Device.h"

namespace kpkg::cuda {

/// Returns the driver of NVIDIA's GPUs. Without NVIDIA's own driver it has no devices.
device::Driver &gpuDriver();
/// Makes gpuDriver() query its devices again. Devices that it returned before stay valid. For tests.
void forgetDevices();

} // namespace kpkg::cuda
#endif
