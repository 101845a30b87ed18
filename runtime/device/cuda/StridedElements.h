// Declares the argument of the kernels that copy elements, for the host's and the device's compiler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_STRIDEDELEMENTS_H
#define KPKG_CUDA_STRIDEDELEMENTS_H

#include <stdint.h>

namespace kpkg::cuda {

/// The same elements in two memories. Dimensions are innermost first, and strides are in elements.
struct StridedElements {
  static constexpr uint32_t maxRank = 16;
  uint64_t from, to; ///< addresses
  uint64_t count;
  uint32_t rank;
  uint32_t reserved;
  uint64_t shape[maxRank];
  int64_t fromStrides[maxRank], toStrides[maxRank];
};
/// Threads per block of the transposing kernels; others run with any number.
inline constexpr uint32_t turnThreads = 256;
static_assert(sizeof(StridedElements) == 416);

} // namespace kpkg::cuda
#endif
