// Declares tensor maps, which describe memory to the TMA, by NVIDIA's CUtensorMap.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_TENSORMAP_H
#define KPKG_CUDA_TENSORMAP_H

#include "runtime/device/TensorMap.h"

#include <kpkg/kpkg.h>
#include <kpkg/result.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kpkg::cuda {

/// The driver's representation, which a kernel takes by value.
struct alignas(64) TensorMapValue {
  std::array<std::byte, 128> bytes;
};

using device::TensorMapShape;

/// Returns the limits of windows in tensor maps of this rank, by NVIDIA's documentation of cuTensorMapEncodeIm2col and
/// of the PTX ISA.
constexpr device::TensorWindowLimits windowLimits(int32_t rank) {
  const int32_t bits = 16 / (rank - 2);
  return {8, (int64_t(1) << (bits - 1)) - 1, (int64_t(1) << bits) - 1};
}

/// What the driver accepts.
inline constexpr device::TensorMapLimits tensorMapLimits = {
    (uint64_t(1) << 32) + 1, uint64_t(1) << 40, {windowLimits(3), windowLimits(4), windowLimits(5)}};

/// Tensor maps of one shape. The driver creates the first map; maps for other addresses are copies of it. Any number of
/// threads may use it.
class TensorMaps {
public:
  explicit TensorMaps(const TensorMapShape &shape);
  ~TensorMaps();
  /// Returns the map for memory at `address`, a multiple of 16. Fails if the driver refuses the shape.
  Status at(uint64_t address, TensorMapValue &map) const;

private:
  struct First;
  std::unique_ptr<First> first;
};

} // namespace kpkg::cuda
#endif
