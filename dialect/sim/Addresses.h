// Computes the addresses of the elements that loads, stores, gathers, scatters and updates access.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/sim/Frame.h"

namespace kpkg::sim {
/// Returns the address of the element at `coordinates`, or null outside the view.
inline char *addressOf(const View &view, llvm::ArrayRef<int64_t> coordinates) {
  if (!view.exists || !view.data)
    return nullptr;
  int64_t offset = 0;
  for (auto [coordinate, extent, stride] : llvm::zip_equal(coordinates, view.shape, view.strides)) {
    if (coordinate < 0 || coordinate >= extent)
      return nullptr;
    offset += coordinate * stride;
  }
  return view.data + offset * storageSize(view.storage);
}

/// Calls `function(i, address or null)` for each element i of a tile of `shape` whose element 0 lies at `offsets`.
template <typename Function>
void forEachAddress(const View &view, llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> shape,
                    Function function) {
  llvm::SmallVector<int64_t> index(shape.size(), 0), coordinates(offsets);
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    for (size_t d = 0; d < shape.size(); ++d) // Wraps at 64 bits, where the element is still outside.
      coordinates[d] = static_cast<int64_t>(static_cast<uint64_t>(offsets[d]) + static_cast<uint64_t>(index[d]));
    function(i, addressOf(view, coordinates));
    for (size_t d = shape.size(); d-- > 0 && ++index[d] == shape[d];)
      index[d] = 0;
  }
}

inline llvm::SmallVector<int64_t> integersOf(const Frame &frame, mlir::ValueRange values) {
  llvm::SmallVector<int64_t> integers;
  for (mlir::Value value : values)
    integers.push_back(frame.integer(value));
  return integers;
}

/// Calls `function(i, address or null)` for each element of the index tiles. Masked elements have null.
template <typename Function>
void forEachIndexed(Frame &frame, const View &view, mlir::ValueRange indices, mlir::Value mask, int64_t count,
                    Function function) {
  llvm::SmallVector<int64_t> coordinates(indices.size());
  for (int64_t i = 0; i < count; ++i) {
    for (auto [coordinate, tile] : llvm::zip_equal(coordinates, indices))
      coordinate = frame.tile(tile).cells[i].i;
    bool enabled = !mask || frame.tile(mask).cells[i].i;
    function(i, enabled ? addressOf(view, coordinates) : nullptr);
  }
}
} // namespace kpkg::sim
