// Declares tensor maps, which describe memory to the TMA, by NVIDIA's CUtensorMap.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_CUDA_TENSORMAP_H
#define KPKG_CUDA_TENSORMAP_H

#include <kpkg/kpkg.h>
#include <kpkg/result.hpp>

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kpkg::cuda {

/// The driver's representation, which a kernel takes by value.
struct alignas(64) TensorMapValue {
  std::array<std::byte, 128> bytes;
};

/// How a window traverses a dimension of a tensor map: base + i * step for all i with values from `lower` to extent - 1
/// + `upper`.
struct TensorWindow {
  int32_t lower = 0, upper = 0;
  uint32_t step = 1;
};

/// All properties of a tensor map except the address. Dimension 0 is contiguous.
struct TensorMapShape {
  static constexpr uint32_t maxRank = 5;
  int32_t dtype = 0; ///< a kpkg_dtype, not bool
  uint32_t rank = 0; ///< 1 to 5
  std::array<uint64_t, maxRank> extents = {};
  std::array<uint64_t, maxRank> strides = {}; ///< bytes, of dimensions 1, 2, ...: multiples of 16 below 2^40
  std::array<uint32_t, maxRank> box = {};     ///< elements
  uint32_t swizzle = 0;                       ///< bytes: 0, 32, 64 or 128
  uint32_t pixels = 0; ///< pixels per copy with box[0] channels each, as `windows` describe; 0: TMA copies boxes
  std::array<TensorWindow, maxRank - 2> windows = {}; ///< of dimensions 1, 2, ... except the last one
};

/// The ends of the ranges that the driver accepts.
inline constexpr uint64_t tensorMapExtentEnd = (uint64_t(1) << 32) + 1, tensorMapStrideEnd = uint64_t(1) << 40;

/// Limits of windows in tensor maps of this rank (3 to 5), by NVIDIA's documentation of cuTensorMapEncodeIm2col and of
/// the PTX ISA.
struct TensorWindowLimits {
  static constexpr int64_t maxStep = 8;
  explicit constexpr TensorWindowLimits(int32_t rank) : bits(16 / (rank - 2)) { assert(rank >= 3 && rank <= 5); }
  /// Corners are from -mostCorner - 1 to mostCorner.
  constexpr int64_t mostCorner() const { return (int64_t(1) << (bits - 1)) - 1; }
  /// A copy may move its window by 0 to this.
  constexpr int64_t mostMove() const { return (int64_t(1) << bits) - 1; }

private:
  int32_t bits;
};

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
