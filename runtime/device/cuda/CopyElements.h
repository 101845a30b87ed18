// Copies of elements by a kernel of the runtime's own, for strides that the driver's copies cannot follow in one command.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_COPYELEMENTS_H
#define KPKG_CUDA_COPYELEMENTS_H

#include "runtime/device/cuda/Driver.h"
#include "runtime/device/cuda/StridedElements.h"

#include <span>

namespace kpkg::cuda {

/// The fewest dimensions that describe the copy, and the widest elements: neighbours that stay neighbours move together. `elementBytes` grows.
StridedElements describeCopy(uint64_t from, std::span<const int64_t> fromStrides, uint64_t to, std::span<const int64_t> toStrides,
                             std::span<const int64_t> shape, int64_t &elementBytes);

/// Queues the copy; elementBytes is 1, 2, 4, 8 or 16. False without doing anything while a graph is recorded before the kernels were
/// loaded: loading is nothing that a graph can hold.
Result<bool> copyElements(const StridedElements &copy, int64_t elementBytes, Stream stream);

} // namespace kpkg::cuda
#endif
