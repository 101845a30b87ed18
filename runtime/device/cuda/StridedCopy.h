// Copies between memory of different strides on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_STRIDEDCOPY_H
#define KPKG_CUDA_STRIDEDCOPY_H

#include "runtime/device/cuda/Memory.h"

#include <span>

namespace kpkg::cuda {

/// Most pieces that one copy may fall apart into without the kernel: each is a command to the driver of about a
/// microsecond.
inline constexpr int64_t maxPieces = 1 << 16;

/// Queues the copy of a tensor; strides in elements, elements of 1, 2, 4, 8 or 16 bytes. Copies of more than two pieces
/// go by a kernel of the runtime's own, which is loaded at its first use; while a graph is recorded before that, by
/// commands.
Status stridedCopy(uint64_t from, std::span<const int64_t> fromStrides, uint64_t to, std::span<const int64_t> toStrides,
                   std::span<const int64_t> shape, int64_t elementBytes, Stream stream);

} // namespace kpkg::cuda
#endif
