// Which measurement fits a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/bench/DeviceLimits.h"

namespace kpkg::command::bench {

Result<DeviceLimits> measureLimits(kpkg_device device, const std::set<DType> &dtypes) {
  if (device.type == KPKG_DEVICE_CPU)
    return measureCpuLimits(dtypes);
  return Error{KPKG_ERROR_UNSUPPORTED,
               "there is no measurement of what a device of type " + std::to_string(device.type) + " can do",
               {},
               {},
               {}};
}

} // namespace kpkg::command::bench
