// Copies between two views of the same shape with any strides.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_CPU_STRIDEDCOPY_H
#define KPKG_DEVICE_CPU_STRIDEDCOPY_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace kpkg::cpu {

/// Addresses are those of the elements with all indices 0. Strides are in elements, of 1, 2, 4 or 8 bytes. The views
/// must not overlap. Large copies use all cores.
void stridedCopy(const void *source, std::span<const int64_t> sourceStrides, void *destination,
                 std::span<const int64_t> destinationStrides, std::span<const int64_t> shape, size_t elementBytes);

} // namespace kpkg::cpu
#endif
