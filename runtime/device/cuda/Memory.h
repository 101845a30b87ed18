// Allocates and copies memory of NVIDIA GPUs in stream order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_MEMORY_H
#define KPKG_CUDA_MEMORY_H

#include "runtime/device/cuda/Driver.h"

namespace kpkg::cuda {

/// Allocates memory, at least 256-byte aligned, from the runtime's own pool, which keeps memory from the driver. 0
/// bytes give 0. The device's context is current.
Result<uint64_t> allocate(int32_t device, int64_t bytes, Stream stream);
Status release(uint64_t memory, Stream stream);

Status copy(uint64_t to, uint64_t from, int64_t bytes, Stream stream);
/// The host's memory may be changed or read once the stream is synchronised.
Status copyToDevice(uint64_t to, const void *from, int64_t bytes, Stream stream);
Status copyToHost(void *to, uint64_t from, int64_t bytes, Stream stream);
/// Copies `rows` rows of `width` bytes. Rows are `toPitch` and `fromPitch` bytes apart (at least `width`).
Status copyRows(uint64_t to, int64_t toPitch, uint64_t from, int64_t fromPitch, int64_t width, int64_t rows,
                Stream stream);

} // namespace kpkg::cuda
#endif
