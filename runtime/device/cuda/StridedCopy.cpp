// Copies between memory with different strides: driver commands for dense runs and rows at a constant distance, else a
// kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cuda/StridedCopy.h"
#include "runtime/device/cuda/CopyElements.h"

#include <vector>

namespace kpkg::cuda {

namespace {
/// A copy as `rows` runs of `run` dense elements at constant distances, with loops around them.
struct Pieces {
  int64_t run = 1;
  int64_t rows = 1, fromPitch = 0, toPitch = 0;
  struct Loop {
    int64_t extent, fromStride, toStride;
  };
  std::vector<Loop> loops; ///< innermost first
  int64_t count = 1;
};

Pieces cut(std::span<const int64_t> fromStrides, std::span<const int64_t> toStrides, std::span<const int64_t> shape) {
  Pieces pieces;
  size_t dim = shape.size();
  for (; dim > 0; --dim) {
    if (shape[dim - 1] == 1)
      continue;
    if (fromStrides[dim - 1] != pieces.run || toStrides[dim - 1] != pieces.run)
      break;
    pieces.run *= shape[dim - 1];
  }
  for (; dim > 0; --dim) {
    if (shape[dim - 1] == 1)
      continue;
    int64_t from = fromStrides[dim - 1], to = toStrides[dim - 1];
    // The driver's rows must not overlap or have negative strides.
    if (pieces.rows == 1 && pieces.loops.empty() && from >= pieces.run && to >= pieces.run) {
      pieces.rows = shape[dim - 1], pieces.fromPitch = from, pieces.toPitch = to;
      continue;
    }
    pieces.loops.push_back({shape[dim - 1], from, to});
    pieces.count *= shape[dim - 1];
  }
  return pieces;
}
} // namespace

Status stridedCopy(uint64_t from, std::span<const int64_t> fromStrides, uint64_t to, std::span<const int64_t> toStrides,
                   std::span<const int64_t> shape, int64_t elementBytes, Stream stream) {
  for (int64_t extent : shape)
    if (extent == 0)
      return {};
  Pieces pieces = cut(fromStrides, toStrides, shape);
  constexpr int64_t asFastAsKernel = 2;
  if (pieces.count > asFastAsKernel) {
    StridedElements elements = describeCopy(from, fromStrides, to, toStrides, shape, elementBytes);
    auto copied = copyElements(elements, elementBytes, stream);
    if (!copied)
      return copied.error();
    if (*copied)
      return {};
  }
  if (pieces.count > maxPieces)
    return Error{KPKG_ERROR_UNSUPPORTED,
                 "a copy on the device would take " + std::to_string(pieces.count) + " commands, more than " +
                     std::to_string(maxPieces),
                 {},
                 {},
                 {}};
  std::vector<int64_t> at(pieces.loops.size(), 0);
  for (int64_t piece = 0; piece < pieces.count; ++piece) {
    int64_t fromOffset = 0, toOffset = 0;
    for (size_t loop = 0; loop < at.size(); ++loop) {
      fromOffset += at[loop] * pieces.loops[loop].fromStride;
      toOffset += at[loop] * pieces.loops[loop].toStride;
    }
    uint64_t source = from + uint64_t(fromOffset * elementBytes), target = to + uint64_t(toOffset * elementBytes);
    Status status = pieces.rows == 1
                        ? copy(target, source, pieces.run * elementBytes, stream)
                        : copyRows(target, pieces.toPitch * elementBytes, source, pieces.fromPitch * elementBytes,
                                   pieces.run * elementBytes, pieces.rows, stream);
    if (!status)
      return status;
    for (size_t loop = 0; loop < at.size() && ++at[loop] == pieces.loops[loop].extent; ++loop)
      at[loop] = 0;
  }
  return {};
}

} // namespace kpkg::cuda
