// Runs compiled kernels of a host object as launches of a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_CPUEXECUTABLE_H
#define KPKG_DEVICE_CPU_CPUEXECUTABLE_H

#include "runtime/device/Launch.h"
#include "runtime/device/cpu/HostObject.h"

namespace kpkg::cpu {

class CpuExecutable : public device::Executable {
public:
  /// `name` is the object's name in messages.
  CpuExecutable(HostObject object, std::string name) : object(std::move(object)), name(std::move(name)) {}
  Result<std::unique_ptr<const device::Kernel>> kernel(const device::KernelDescription &description) override;

private:
  Result<const void *> find(const std::string &symbol) const;

  HostObject object;
  std::string name;
};

} // namespace kpkg::cpu
#endif
