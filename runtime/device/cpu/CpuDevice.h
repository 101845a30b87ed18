// Declares the host as a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_CPUDEVICE_H
#define KPKG_DEVICE_CPU_CPUDEVICE_H

#include "runtime/device/Device.h"

namespace kpkg::cpu {

/// Returns the driver of the host, which has one device. It always exists.
device::Driver &hostDriver();

} // namespace kpkg::cpu
#endif
