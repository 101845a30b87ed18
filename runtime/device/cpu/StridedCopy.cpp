// Copies between two views of the same shape with any strides.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/StridedCopy.h"
#include "runtime/device/cpu/Grid.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace kpkg::cpu {

namespace {
struct Dimension {
  int64_t extent;
  int64_t source;
  int64_t destination;
};

/// The views with at most `count` dimensions, outermost first. The last two are copied as a plane.
struct Plan {
  const std::byte *source;
  std::byte *destination;
  std::array<Dimension, 18> dimensions;
  int count = 0;
  size_t elementBytes;
  int64_t partsPerPlane;
};
} // namespace

template <typename T> static void copyPlane(const std::byte *from, std::byte *to, Dimension outer, Dimension inner) {
  auto *source = reinterpret_cast<const T *>(from);
  auto *destination = reinterpret_cast<T *>(to);
  if (inner.source == 1 && inner.destination == 1) {
    for (int64_t i = 0; i < outer.extent; ++i)
      std::memcpy(destination + i * outer.destination, source + i * outer.source, size_t(inner.extent) * sizeof(T));
    return;
  }
  // Tiles keep the cache lines of both sides in the cache if one side is transposed.
  constexpr int64_t tile = 32;
  for (int64_t i0 = 0; i0 < outer.extent; i0 += tile)
    for (int64_t j0 = 0; j0 < inner.extent; j0 += tile)
      for (int64_t i = i0, iEnd = std::min(i0 + tile, outer.extent); i < iEnd; ++i)
        for (int64_t j = j0, jEnd = std::min(j0 + tile, inner.extent); j < jEnd; ++j)
          destination[i * outer.destination + j * inner.destination] = source[i * outer.source + j * inner.source];
}

/// Rows of a plane that one part of the work copies.
static constexpr int64_t rowsPerPart = 64;

/// Copies parts [begin, end). A part is rows of a plane, for all dimensions but the last two.
static void copyParts(void *context, int64_t begin, int64_t end) {
  const Plan &plan = *static_cast<const Plan *>(context);
  int outerCount = plan.count - 2;
  for (int64_t index = begin; index < end; ++index) {
    int64_t rest = index / plan.partsPerPlane, row = index % plan.partsPerPlane * rowsPerPart;
    Dimension outer = plan.dimensions[size_t(outerCount)], inner = plan.dimensions[size_t(outerCount) + 1];
    outer.extent = std::min(rowsPerPart, outer.extent - row);
    int64_t source = row * outer.source, destination = row * outer.destination;
    for (int d = outerCount; d-- > 0;) {
      int64_t position = rest % plan.dimensions[size_t(d)].extent;
      rest /= plan.dimensions[size_t(d)].extent;
      source += position * plan.dimensions[size_t(d)].source;
      destination += position * plan.dimensions[size_t(d)].destination;
    }
    const std::byte *from = plan.source + source * int64_t(plan.elementBytes);
    std::byte *to = plan.destination + destination * int64_t(plan.elementBytes);
    switch (plan.elementBytes) {
    case 1:
      copyPlane<uint8_t>(from, to, outer, inner);
      break;
    case 2:
      copyPlane<uint16_t>(from, to, outer, inner);
      break;
    case 4:
      copyPlane<uint32_t>(from, to, outer, inner);
      break;
    default:
      copyPlane<uint64_t>(from, to, outer, inner);
      break;
    }
  }
}

void stridedCopy(const void *source, std::span<const int64_t> sourceStrides, void *destination,
                 std::span<const int64_t> destinationStrides, std::span<const int64_t> shape, size_t elementBytes) {
  assert(shape.size() <= 16 && sourceStrides.size() == shape.size() && destinationStrides.size() == shape.size());
  Plan plan;
  plan.source = static_cast<const std::byte *>(source);
  plan.destination = static_cast<std::byte *>(destination);
  plan.elementBytes = elementBytes;
  int count = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0)
      return;
    if (shape[d] != 1)
      plan.dimensions[size_t(count++)] = {shape[d], sourceStrides[d], destinationStrides[d]};
  }
  // Orders dimensions as the destination is written. For few dimensions an insertion sort suffices, which keeps equal
  // ones in order.
  for (int d = 1; d < count; ++d)
    for (int e = d; e > 0 && std::abs(plan.dimensions[size_t(e)].destination) >
                                 std::abs(plan.dimensions[size_t(e) - 1].destination);
         --e)
      std::swap(plan.dimensions[size_t(e)], plan.dimensions[size_t(e) - 1]);
  // Merges a dimension with the next inner one if both are contiguous.
  int merged = 0;
  for (int d = 0; d < count; ++d) {
    Dimension current = plan.dimensions[size_t(d)];
    if (merged > 0) {
      Dimension &outer = plan.dimensions[size_t(merged) - 1];
      if (outer.source == current.extent * current.source &&
          outer.destination == current.extent * current.destination) {
        outer = {outer.extent * current.extent, current.source, current.destination};
        continue;
      }
    }
    plan.dimensions[size_t(merged++)] = current;
  }
  while (merged < 2) {
    std::copy_backward(plan.dimensions.begin(), plan.dimensions.begin() + merged, plan.dimensions.begin() + merged + 1);
    plan.dimensions[0] = {1, 0, 0};
    ++merged;
  }
  plan.count = merged;
  int64_t planes = 1, rowBytes = int64_t(elementBytes) * plan.dimensions[size_t(merged) - 1].extent;
  for (int d = 0; d < merged - 2; ++d)
    planes *= plan.dimensions[size_t(d)].extent;
  int64_t rows = plan.dimensions[size_t(merged) - 2].extent;
  plan.partsPerPlane = (rows + rowsPerPart - 1) / rowsPerPart;
  int64_t grain = std::max<int64_t>(1, (128 << 10) / (rowBytes * std::min(rows, rowsPerPart)));
  parallelFor(planes * plan.partsPerPlane, grain, copyParts, &plan);
}

} // namespace kpkg::cpu
