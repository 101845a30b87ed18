// Assigns counters of kernels to launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_COUNTERS_H
#define KPKG_CUDA_COUNTERS_H

#include "runtime/device/cuda/Driver.h"

#include <shared_mutex>

namespace kpkg::cuda {

/// A counter of a launch. No launch that may run concurrently uses it. Held until the kernel is launched.
struct Counter {
  uint32_t number = 0;
  std::shared_lock<std::shared_mutex> held;
};

/// Returns a counter for a launch. The device's context is current.
///
/// Kernels with the dynamic tile scheduler have `count` counters in their code, each 0 before and after a launch.
/// Launches of one stream run in order, so a stream has one counter, the same for all kernels. A captured launch may
/// run concurrently with all streams. So a stream has another counter in each recording, for as long as the graph and
/// everything made from it exist.
///
/// If streams hold all counters, it waits for the device once and starts afresh. It fails if graphs hold all counters,
/// or while the stream is captured.
Result<Counter> counterFor(int32_t device, Stream stream, uint32_t count);

} // namespace kpkg::cuda
#endif
