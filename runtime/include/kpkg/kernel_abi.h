// What a compiled CPU kernel and the runtime agree on: the argument words, the call record and the entry points.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_KERNEL_ABI_H
#define KPKG_KERNEL_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Version of everything in this file. A host object says nothing about it: the package's format major version covers
/// it.
#define KPKG_KERNEL_ABI_VERSION 1

/// Alignment of the scratch memory that a task gets.
#define KPKG_SCRATCH_ALIGNMENT 64

/// One launch, shared by all its tasks and read-only, except `scratch`, which is private to the running task.
typedef struct KpkgCpuCall {
  /// 8-byte words, kernel arguments in order. A view of rank r: address, shape[r], stride[r] (strides in elements,
  /// maybe 0 or negative). A scalar: one word, value in the low bytes (Bool 0 or 1, floats as bits, Int as int64). An
  /// absent optional tensor: all its words 0.
  const int64_t *args;
  /// Number of blocks in x, y, z.
  int64_t grid[3];
  /// KPKG_SCRATCH_ALIGNMENT-aligned; as many bytes as the instance asks for; contents undefined. NULL when it asks for
  /// none.
  void *scratch;
  /// Receives the values of a `print`. `format` indexes the instance's `prints`. Never NULL.
  void (*print)(void *context, int32_t format, const uint64_t *values, int32_t count);
  void *printContext;
} KpkgCpuCall;

/// Runs the blocks with linear ids [begin, end), x fastest. Returns 0, or 1 + the index of the assert that failed.
typedef int32_t (*KpkgCpuKernel)(const KpkgCpuCall *call, int64_t begin, int64_t end);

/// A persistent kernel has no grid: this entry, named `<symbol>$tiles`, gives the number of tiles for its arguments.
/// The runtime then runs [0, count) with grid = {count, 1, 1}.
typedef int64_t (*KpkgCpuTileCount)(const int64_t *args);

/// What a kernel on a GPU tells the host: the last parameter of one with asserts or prints is the address of this, in
/// memory of the GPU. All zero before the launch but for `capacity`.
typedef struct KpkgGpuReport {
  /// 0, or 1 + the index of an assert that failed.
  int32_t failed;
  /// Messages of prints that found no room.
  uint32_t lost;
  /// Words that prints have asked for, those without room included.
  uint64_t used;
  /// Words that there are in `messages`.
  uint64_t capacity;
  /// One message after the other: (1 + format) << 32 | count, then `count` words as for KpkgCpuCall::print. A zero ends
  /// them.
  uint64_t messages[1];
} KpkgGpuReport;

#ifdef __cplusplus
}
#endif
#endif
