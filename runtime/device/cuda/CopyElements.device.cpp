// Kernels that copy elements between memory with different strides. clang compiles them to PTX during the build.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/StridedElements.h"

using kpkg::cuda::StridedElements;
using kpkg::cuda::turnThreads;

struct alignas(16) Sixteen {
  uint64_t halves[2];
};

/// Index is only as wide as necessary, because divisions by the extents dominate the time.
template <typename Element, typename Index> static inline void copyElements(const StridedElements &copy) {
  auto *from = (const Element *)copy.from;
  auto *to = (Element *)copy.to;
  Index threads = Index(__nvvm_read_ptx_sreg_nctaid_x()) * Index(__nvvm_read_ptx_sreg_ntid_x());
  Index first = Index(__nvvm_read_ptx_sreg_ctaid_x()) * Index(__nvvm_read_ptx_sreg_ntid_x()) +
                Index(__nvvm_read_ptx_sreg_tid_x());
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

/// Transposes squares through shared memory, so that reads and writes are contiguous. The first dimension is contiguous
/// in the target, the second in the source. See Ruetsch and Micikevicius, Optimizing Matrix Transpose in CUDA, 2009.
template <typename Element, uint32_t side>
static inline void turnElements(const StridedElements &copy,
                                Element(__attribute__((address_space(3))) * square)[side + 1]) {
  uint64_t acrossFirst = (copy.shape[0] + side - 1) / side, acrossSecond = (copy.shape[1] + side - 1) / side;
  uint64_t squares = acrossFirst * acrossSecond;
  for (uint32_t dim = 2; dim < copy.rank; ++dim)
    squares *= copy.shape[dim];
  uint32_t thread = __nvvm_read_ptx_sreg_tid_x();
  uint32_t x = thread % side, y = thread / side;
  constexpr uint32_t step = turnThreads / side;
  for (uint64_t number = __nvvm_read_ptx_sreg_ctaid_x(); number < squares; number += __nvvm_read_ptx_sreg_nctaid_x()) {
    uint64_t first = number % acrossFirst * side, rest = number / acrossFirst;
    uint64_t second = rest % acrossSecond * side;
    rest /= acrossSecond;
    auto *from = (const Element *)copy.from + second;
    auto *to = (Element *)copy.to + first;
    for (uint32_t dim = 2; dim < copy.rank; ++dim) {
      int64_t at = int64_t(rest % copy.shape[dim]);
      from += at * copy.fromStrides[dim];
      to += at * copy.toStrides[dim];
      rest /= copy.shape[dim];
    }
    constexpr uint32_t count = side / step;
    Element held[count] = {}; // all loads are issued before the first arrives
#pragma unroll
    for (uint32_t k = 0; k < count; ++k)
      if (first + y + k * step < copy.shape[0] && second + x < copy.shape[1])
        held[k] = from[int64_t(first + y + k * step) * copy.fromStrides[0] + x];
#pragma unroll
    for (uint32_t k = 0; k < count; ++k)
      square[y + k * step][x] = held[k];
    __nvvm_barrier_sync(0);
#pragma unroll
    for (uint32_t k = 0; k < count; ++k)
      if (first + x < copy.shape[0] && second + y + k * step < copy.shape[1])
        to[int64_t(second + y + k * step) * copy.toStrides[1] + x] = square[x][y + k * step];
    __nvvm_barrier_sync(0);
  }
}

template <typename Element> static inline void turn(const StridedElements &copy) {
  constexpr uint32_t side = sizeof(Element) < 4 ? 64 : 32;
  static __attribute__((address_space(3))) Element square[side][side + 1];
  turnElements<Element, side>(copy, square);
}

#define KERNEL extern "C" [[clang::nvptx_kernel]] void
KERNEL kpkg_copy_1(StridedElements copy) { copyAny<uint8_t>(copy); }
KERNEL kpkg_copy_2(StridedElements copy) { copyAny<uint16_t>(copy); }
KERNEL kpkg_copy_4(StridedElements copy) { copyAny<uint32_t>(copy); }
KERNEL kpkg_copy_8(StridedElements copy) { copyAny<uint64_t>(copy); }
KERNEL kpkg_copy_16(StridedElements copy) { copyAny<Sixteen>(copy); }
KERNEL kpkg_turn_1(StridedElements copy) { turn<uint8_t>(copy); }
KERNEL kpkg_turn_2(StridedElements copy) { turn<uint16_t>(copy); }
KERNEL kpkg_turn_4(StridedElements copy) { turn<uint32_t>(copy); }
KERNEL kpkg_turn_8(StridedElements copy) { turn<uint64_t>(copy); }
