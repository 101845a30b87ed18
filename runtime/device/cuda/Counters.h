// Which counter of a kernel a launch has for itself.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_COUNTERS_H
#define KPKG_CUDA_COUNTERS_H

#include "runtime/device/cuda/Driver.h"

#include <shared_mutex>

namespace kpkg::cuda {

/// A counter of a launch: no other launch that may run at the same time has it. Held until the kernel is launched.
struct Counter {
  uint32_t number = 0;
  std::shared_lock<std::shared_mutex> held;
};

/// Kernels that share out their work by a counter have `count` of them in their code, each 0 before and after a launch.
/// Launches of one stream follow each other, so a stream has one counter, the same of all kernels. What is recorded
/// into a graph may run beside all streams, so streams have another one in each recording, for as long as the graph and
/// what was made of it exist. Where all are given to streams, waits for the device once and begins anew; an error where
/// graphs have them all, or while the stream is being recorded. The device's context is current.
Result<Counter> counterFor(int32_t device, Stream stream, uint32_t count);

} // namespace kpkg::cuda
#endif
