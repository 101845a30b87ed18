// Decides which tiles are stored by tensor maps, and through which panels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/TensorViews.h"

namespace kpkg::kgpu {
/// The rows of a panel, and the bytes of its rows at most.
inline constexpr int64_t kPanelRows = 64;
inline constexpr int64_t kMostPanelBytes = 128;

/// The panels through which a tile is stored.
struct StoreShape {
  int64_t panelBytes, width; ///< of a row of a panel, in bytes and elements
};

/// Returns the panels of a 16-bit tile that is stored, of up to `mostPanelBytes`, or of an f32 tile that is added.
std::optional<StoreShape> storeShape(mlir::RankedTensorType type, int64_t consumers, bool adds,
                                     int64_t mostPanelBytes = kMostPanelBytes);
/// Returns the panels of a 16-bit tile whose transpose is an accumulator: 64 of its columns each.
std::optional<StoreShape> transposedShape(mlir::RankedTensorType type, int64_t consumers);

/// Returns the place of a stored tile in a kernel argument, or why a tensor map cannot describe it.
ResultOrWhy<TensorView> storedPlace(mlir::Value view, mlir::ValueRange offsets, mlir::RankedTensorType type);

/// Returns whether `consumers` warpgroups can add the tile to memory by a tensor map. It must be the result of a
/// product, and a tensor map must be able to describe the view.
bool isAddedByMap(tile::AddStoreOp store, unsigned consumers);
} // namespace kpkg::kgpu
