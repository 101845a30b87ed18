// Declares tensor maps, which describe a view's boxes to a device that copies whole boxes, and their limits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DEVICE_TENSORMAP_H
#define KPKG_DEVICE_TENSORMAP_H

#include <array>
#include <cstdint>

namespace kpkg::device {

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
  uint32_t pixels = 0; ///< pixels per copy with box[0] channels each, as `windows` describe; 0: the copies are boxes
  std::array<TensorWindow, maxRank - 2> windows = {}; ///< of dimensions 1, 2, ... except the last one
};

/// Limits of windows in tensor maps of one rank.
struct TensorWindowLimits {
  int64_t maxStep = 0;
  int64_t mostCorner = 0; ///< corners are from -mostCorner - 1 to mostCorner
  int64_t mostMove = 0;   ///< a copy may move its window by 0 to this
};

/// The tensor maps that a device accepts.
struct TensorMapLimits {
  uint64_t extentEnd = 0;                    ///< end of the accepted extents
  uint64_t strideEnd = 0;                    ///< end of the accepted strides, in bytes
  std::array<TensorWindowLimits, 3> windows; ///< in maps of rank 3, 4 and 5
};

} // namespace kpkg::device
#endif
