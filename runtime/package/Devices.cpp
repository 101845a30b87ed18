// Lists the kinds of devices.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Devices.h"
#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/cuda/CudaDevice.h"

namespace kpkg::package {

std::span<device::Driver *const> drivers() {
  static device::Driver *const all[] = {&cpu::hostDriver(), &cuda::gpuDriver()};
  return all;
}

device::Driver *findDriver(int32_t type) {
  for (device::Driver *driver : drivers())
    if (driver->traits.type == type)
      return driver;
  return nullptr;
}

Result<device::Device *> findDevice(kpkg_device where) {
  device::Driver *driver = findDriver(where.type);
  return driver ? driver->device(where.index) : unknownDevice(where.type);
}

device::Device &hostDevice() {
  static device::Device &host = **drivers().front()->device(0);
  return host;
}

Error unknownDevice(int32_t type) {
  std::string known;
  for (const device::Driver *driver : drivers())
    known += (known.empty() ? "" : ", ") + std::string(driver->traits.name);
  return {KPKG_ERROR_UNSUPPORTED,
          "this runtime has no code for devices of type " + std::to_string(type) + ", only for " + known,
          {},
          {},
          {}};
}

} // namespace kpkg::package
