// Copies of elements by a kernel of the runtime's own, for strides that the driver's copies cannot follow in one
// command.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_COPYELEMENTS_H
#define KPKG_CUDA_COPYELEMENTS_H

#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/StridedElements.h"

#include <span>

namespace kpkg::cuda {

/// The fewest dimensions that describe the copy, and the widest elements: neighbours that stay neighbours move
/// together. `elementBytes` grows.
StridedElements describeCopy(uint64_t from, std::span<const int64_t> fromStrides, uint64_t to,
                             std::span<const int64_t> toStrides, std::span<const int64_t> shape, int64_t &elementBytes);

/// Where neighbours of the source are apart in the target, and the other way round: puts the dimension of the target's
/// neighbours first, that of the source's second, and returns how many squares of 64 x 64 elements (32 x 32 of 4 or 8
/// bytes) the copy has, which a kernel turns one by one. 0 for other copies, which it leaves as they are.
uint64_t turnCopy(StridedElements &copy, int64_t elementBytes);

/// Queues the copy, of elements of 1, 2, 4, 8 or 16 bytes. False without doing anything while a graph is recorded
/// before the kernels were loaded: loading is nothing that a graph can hold.
Result<bool> copyElements(StridedElements copy, int64_t elementBytes, Stream stream);

} // namespace kpkg::cuda
#endif
