// Decides which tiles are stored by tensor maps, and through which panels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/StorePanels.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
/// A column of four 8x8 matrices, which one instruction stores.
constexpr int64_t kFewestPanelBytes = 32;

/// Returns the width of the widest panels that divide rows of `rowBytes`.
int64_t panelBytesFor(int64_t rowBytes, int64_t most) { return std::min<int64_t>(rowBytes & -rowBytes, most); }
} // namespace

std::optional<StoreShape> transposedShape(RankedTensorType type, int64_t consumers) {
  int64_t bytes = elementBytes(type.getElementType());
  if (bytes != 2 || type.getDimSize(0) % kPanelRows != 0 || type.getDimSize(1) % (kPanelRows * consumers) != 0)
    return std::nullopt;
  return StoreShape{kMostPanelBytes, kMostPanelBytes / bytes};
}

std::optional<StoreShape> storeShape(RankedTensorType type, int64_t consumers, bool adds, int64_t mostPanelBytes) {
  int64_t bytes = elementBytes(type.getElementType());
  if (adds) {
    bool hasRows = type.getDimSize(0) % (kPanelRows * consumers) == 0 || sharesPanels(type.getShape(), consumers);
    if (!type.getElementType().isF32() || !hasRows || type.getDimSize(1) * bytes % kMostPanelBytes != 0)
      return std::nullopt;
    return StoreShape{kMostPanelBytes, kMostPanelBytes / bytes};
  }
  int64_t panelBytes = panelBytesFor(bytes * type.getDimSize(1), mostPanelBytes);
  if (bytes != 2 || type.getDimSize(0) % (kPanelRows * consumers) != 0 || panelBytes < kFewestPanelBytes)
    return std::nullopt;
  return StoreShape{panelBytes, panelBytes / bytes};
}

ResultOrWhy<TensorView> storedPlace(Value view, ValueRange offsets, RankedTensorType type) {
  ResultOrWhy<TensorView> target = tensorView(view, offsets, type.getShape());
  if (target && target->unitOfTile != 1)
    return Refusal{"the rows of the tile are not contiguous in the tensor"};
  if (target && target->slice)
    return Refusal{"the view is a slice, which copies to memory cannot bound"};
  return target;
}

bool isAddedByMap(tile::AddStoreOp store, unsigned consumers) {
  auto type = cast<RankedTensorType>(store.getValue().getType());
  return consumers != 0 && store.getValue().getDefiningOp<tile::DotOp>() && type.getRank() == 2 &&
         storeShape(type, consumers, /*adds=*/true) && storedPlace(store.getView(), store.getOffsets(), type);
}
} // namespace kpkg::kgpu
