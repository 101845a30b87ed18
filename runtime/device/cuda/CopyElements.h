// Copies elements with a kernel of the runtime, for strides that one copy command of the driver cannot handle.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_COPYELEMENTS_H
#define KPKG_CUDA_COPYELEMENTS_H

#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/StridedElements.h"

#include <span>

namespace kpkg::cuda {

/// Describes a copy with the fewest dimensions and the widest elements: elements that are contiguous on both sides are
/// merged, which increases `elementBytes`.
StridedElements describeCopy(uint64_t from, std::span<const int64_t> fromStrides, uint64_t to,
                             std::span<const int64_t> toStrides, std::span<const int64_t> shape, int64_t &elementBytes);

/// Prepares a transposing copy, in which contiguous elements of the source are apart in the target, and vice versa.
///
/// Moves the target's contiguous dimension to the front, and the source's to the second place. Returns the number of
/// squares of 64 x 64 elements (32 x 32 of 4 or 8 bytes), which a kernel transposes one by one. Returns 0 for other
/// copies, which it does not change.
uint64_t turnCopy(StridedElements &copy, int64_t elementBytes);

/// Queues the copy, with elements of 1, 2, 4, 8 or 16 bytes. Returns false without effect during graph capture if the
/// kernels are not loaded, because graphs cannot contain loading.
Result<bool> copyElements(StridedElements copy, int64_t elementBytes, Stream stream);

} // namespace kpkg::cuda
#endif
