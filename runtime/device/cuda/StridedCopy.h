// Copies between memory of different strides on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_STRIDEDCOPY_H
#define KPKG_CUDA_STRIDEDCOPY_H

#include "runtime/device/cuda/Memory.h"

#include <span>

namespace kpkg::cuda {

/// Most pieces that one copy may fall apart into: each is a command to the driver of about a microsecond.
inline constexpr int64_t maxPieces = 1 << 16;

/// How many commands stridedCopy needs: 1 for dense memory, one for each two-dimensional piece else.
int64_t countPieces(std::span<const int64_t> fromStrides, std::span<const int64_t> toStrides, std::span<const int64_t> shape);

/// Queues the copy of a tensor; strides in elements.
Status stridedCopy(uint64_t from, std::span<const int64_t> fromStrides, uint64_t to, std::span<const int64_t> toStrides,
                   std::span<const int64_t> shape, int64_t elementBytes, Stream stream);

} // namespace kpkg::cuda
#endif
