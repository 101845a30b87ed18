// Declares the interface between compiled CPU kernels and the runtime: argument words, call record and entry points.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_KERNEL_ABI_H
#define KPKG_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Version of everything in this file. Host objects do not contain it: the package's format major version implies it.
#define KPKG_KERNEL_ABI_VERSION 1

/// Alignment of a task's scratch memory.
#define KPKG_SCRATCH_ALIGNMENT 64

/// One launch, shared by all its tasks. It is read-only except `scratch`, which is private to the running task.
typedef struct KpkgCpuCall {
  /// 8-byte words, kernel arguments in order. A view of rank r: address, shape[r], stride[r] (strides in elements,
  /// maybe 0 or negative). A scalar: one word, value in the low bytes (Bool 0 or 1, floats as bits, Int as int64). An
  /// absent optional tensor: all its words 0.
  const int64_t *args;
  /// Number of blocks in x, y, z.
  int64_t grid[3];
  /// Aligned to KPKG_SCRATCH_ALIGNMENT, with the instance's number of bytes and undefined contents. NULL for 0 bytes.
  void *scratch;
  /// Receives the values of a `print`. `format` is an index in the instance's `prints`. Never NULL.
  void (*print)(void *context, int32_t format, const uint64_t *values, int32_t count);
  void *printContext;
} KpkgCpuCall;

/// Runs the blocks with linear ids [begin, end), x fastest. Returns 0, or 1 + the index of the failed assert.
typedef int32_t (*KpkgCpuKernel)(const KpkgCpuCall *call, int64_t begin, int64_t end);

/// A persistent kernel has no grid. This entry, named `<symbol>$tiles`, returns the number of tiles for its arguments.
/// The runtime then runs [0, count) with grid = {count, 1, 1}.
typedef int64_t (*KpkgCpuTileCount)(const int64_t *args);

/// The report of a GPU kernel to the host. If the kernel has asserts or prints, its last parameter is the address of
/// this struct in GPU memory. Before the launch, all fields but `capacity` are zero.
typedef struct KpkgGpuReport {
  /// 0, or 1 + the index of a failed assert.
  int32_t failed;
  /// Number of print messages without space.
  uint32_t lost;
  /// Words that prints have requested, including words that did not fit.
  uint64_t used;
  /// Size of `messages` in words.
  uint64_t capacity;
  /// Consecutive messages: (1 + format) << 32 | count, then `count` words as for KpkgCpuCall::print. A zero ends them.
  uint64_t messages[1];
} KpkgGpuReport;

#ifdef __cplusplus
}
#endif
#endif
