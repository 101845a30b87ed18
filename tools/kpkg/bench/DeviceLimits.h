// Measures the limits of a device in this run: its copy rate, and its floating-point rate.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "tools/kpkg/Place.h"
#include <set>

namespace kpkg::command::bench {

/// A measured rate, and a description of the measurement for the report.
struct Limit {
  double perSecond = 0;
  std::string how;
};

struct ArithmeticLimit {
  DType dtype = DType::None;
  Limit flops;
};

struct DeviceLimits {
  /// For example "AMD EPYC, x86-64-v3, 2 threads".
  std::string device;
  /// Bytes read plus bytes written.
  Limit copy;
  std::vector<ArithmeticLimit> arithmetic;

  /// Returns null if nothing was measured for this dtype.
  const Limit *flopsOf(DType dtype) const {
    for (const ArithmeticLimit &limit : arithmetic)
      if (limit.dtype == dtype)
        return &limit.flops;
    return nullptr;
  }
};

/// Measures the copy rate, and the arithmetic rate for each of `dtypes` (floating-point), with kernels compiled for the
/// device. Takes about a second.
Result<DeviceLimits> measureLimits(const Place &place, const std::set<DType> &dtypes);

} // namespace kpkg::command::bench
