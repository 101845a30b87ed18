// What a device can do, measured in this run: how fast it copies memory, and how many floating-point operations it
// does. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <kpkg/kpkg.hpp>
#include <set>

namespace kpkg::command::bench {

/// A measured rate and, in words for the report, how it was measured.
struct Limit {
  double perSecond = 0;
  std::string how;
};

struct ArithmeticLimit {
  DType dtype = DType::None;
  Limit flops;
};

struct DeviceLimits {
  /// "AMD EPYC, x86-64-v3, 2 threads"
  std::string device;
  /// Bytes read plus bytes written.
  Limit copy;
  std::vector<ArithmeticLimit> arithmetic;

  /// Null when nothing was measured for this dtype.
  const Limit *flopsOf(DType dtype) const {
    for (const ArithmeticLimit &limit : arithmetic)
      if (limit.dtype == dtype)
        return &limit.flops;
    return nullptr;
  }
};

/// Measures the copy rate, and the arithmetic rate for each of `dtypes` (floating-point ones). Takes about a second.
/// KPKG_ERROR_UNSUPPORTED for a kind of device that has no measurement.
Result<DeviceLimits> measureLimits(kpkg_device device, const std::set<DType> &dtypes);

/// measureLimits() of the host.
Result<DeviceLimits> measureCpuLimits(const std::set<DType> &dtypes);

} // namespace kpkg::command::bench
