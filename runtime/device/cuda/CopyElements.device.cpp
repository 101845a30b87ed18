// The kernels that copy elements between memory of different strides; clang makes PTX of them when kpkg is built.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/StridedElements.h"

using kpkg::cuda::StridedElements;

struct alignas(16) Sixteen {
  uint64_t halves[2];
};

/// Index is as wide as the number of elements needs: divisions by the extents are most of the work.
template <typename Element, typename Index> static inline void copyElements(const StridedElements &copy) {
  auto *from = (const Element *)copy.from;
  auto *to = (Element *)copy.to;
  Index threads = Index(__nvvm_read_ptx_sreg_nctaid_x()) * Index(__nvvm_read_ptx_sreg_ntid_x());
  Index first = Index(__nvvm_read_ptx_sreg_ctaid_x()) * Index(__nvvm_read_ptx_sreg_ntid_x()) + Index(__nvvm_read_ptx_sreg_tid_x());
  for (uint64_t number = first; number < copy.count; number += threads) {
    Index rest = Index(number);
    int64_t source = 0, target = 0;
    for (uint32_t dim = 0; dim < copy.rank; ++dim) {
      Index extent = Index(copy.shape[dim]), quotient = rest / extent, at = rest - quotient * extent;
      source += int64_t(at) * copy.fromStrides[dim];
      target += int64_t(at) * copy.toStrides[dim];
      rest = quotient;
    }
    to[target] = from[source];
  }
}

template <typename Element> static inline void copyAny(const StridedElements &copy) {
  if (copy.count >> 32)
    copyElements<Element, uint64_t>(copy);
  else
    copyElements<Element, uint32_t>(copy);
}

#define KERNEL extern "C" [[clang::nvptx_kernel]] void
KERNEL kpkg_copy_1(StridedElements copy) { copyAny<uint8_t>(copy); }
KERNEL kpkg_copy_2(StridedElements copy) { copyAny<uint16_t>(copy); }
KERNEL kpkg_copy_4(StridedElements copy) { copyAny<uint32_t>(copy); }
KERNEL kpkg_copy_8(StridedElements copy) { copyAny<uint64_t>(copy); }
KERNEL kpkg_copy_16(StridedElements copy) { copyAny<Sixteen>(copy); }
