// Runs the blocks of a CPU kernel, as tasks on all cores or, if they are few, on the caller's thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_GRID_H
#define KPKG_DEVICE_CPU_GRID_H

#include <kpkg/kernel_abi.h>

#include <cstddef>
#include <cstdint>

namespace kpkg::cpu {

struct Launch {
  KpkgCpuKernel kernel = nullptr;
  /// run() sets `scratch` for each task.
  KpkgCpuCall call = {};
  /// Per task.
  size_t scratchBytes = 0;
  /// Approximate bytes of memory that the launch accesses, for deciding whether to wake other threads.
  uint64_t workBytes = 0;
};

/// Blocks until all blocks have run. Returns 0, or 1 + the index of a failed assert (then some blocks did not run).
///
/// Throws std::bad_alloc if there is no memory for scratch. Thread-safe. In a child after fork() it uses one thread,
/// because the others do not exist there.
int32_t run(const Launch &launch);

/// Calls body(context, begin, end) for parts of [0, count), each at least `grain` long, with the threads of run().
void parallelFor(int64_t count, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end), void *context);

/// Starts the worker threads, so that the first large call need not do so.
void startThreads();

} // namespace kpkg::cpu
#endif
