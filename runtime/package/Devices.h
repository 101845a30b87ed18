// Declares the registry of devices: the only place of the package layer that knows which kinds there are.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PACKAGE_DEVICES_H
#define KPKG_PACKAGE_DEVICES_H

#include "runtime/device/Device.h"

#include <span>

namespace kpkg::package {

/// The device of calls without tensors.
inline constexpr kpkg_device defaultDevice = {KPKG_DEVICE_CPU, 0};

/// Returns the drivers of all kinds of devices, that of the host first.
std::span<device::Driver *const> drivers();
/// Returns the driver for DLPack's device type; null if there is no code for such devices.
device::Driver *findDriver(int32_t type);
/// Returns the device of a tensor, or why there is none.
Result<device::Device *> findDevice(kpkg_device where);
device::Device &hostDevice();

/// Returns the error of devices for which findDriver() has nothing.
Error unknownDevice(int32_t type);

} // namespace kpkg::package
#endif
