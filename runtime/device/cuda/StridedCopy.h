// Copies between memory with different strides on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_STRIDEDCOPY_H
#define KPKG_CUDA_STRIDEDCOPY_H

#include "runtime/device/cuda/Memory.h"

#include <span>

namespace kpkg::cuda {

/// Limit of pieces of one copy without the kernel. Each is a driver command of about a microsecond.
inline constexpr int64_t maxPieces = 1 << 16;

/// Queues the copy of a tensor. Strides are in elements of 1, 2, 4, 8 or 16 bytes.
///
/// Copies of more than two pieces use a kernel of the runtime, which is loaded on first use. During graph capture
/// before that, they use commands.
Status stridedCopy(uint64_t from, std::span<const int64_t> fromStrides, uint64_t to, std::span<const int64_t> toStrides,
                   std::span<const int64_t> shape, int64_t elementBytes, Stream stream);

} // namespace kpkg::cuda
#endif
