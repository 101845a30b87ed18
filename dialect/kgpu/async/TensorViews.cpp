// Parts of views that tensor maps can describe.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/async/TensorViews.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
constexpr int64_t kAlignment = 16, kMostDimensions = 5;

bool hasSuitableFacts(tile::ViewType view) {
  tile::ViewFacts facts = view.getFacts();
  return view.getUnit() >= 0 && facts.align % kAlignment == 0 && facts.divisible * view.getElementBytes() % kAlignment == 0 &&
         facts.index == 32 && view.getRank() <= kMostDimensions;
}
} // namespace

std::optional<TensorView> tensorView(Value view, ValueRange offsets, ArrayRef<int64_t> tile) {
  TensorView result;
  result.offsets.assign(offsets.begin(), offsets.end());
  result.box.assign(tile.begin(), tile.end());
  if (tile.size() != 2 || llvm::is_contained(tile, 1))
    return std::nullopt;
  while (true) {
    if (auto slice = view.getDefiningOp<tile::SliceOp>()) {
      if (result.slice || result.box[slice.getDimension()] == 1)
        return std::nullopt;
      result.slice = slice;
      result.slicedDim = slice.getDimension();
      view = slice.getView();
      continue;
    }
    auto drop = view.getDefiningOp<tile::DropOp>();
    if (!drop)
      break;
    for (auto [dim, index] : llvm::zip(drop.getDims(), drop.getIndices())) { // ascending
      result.offsets.insert(result.offsets.begin() + dim, index);
      result.box.insert(result.box.begin() + dim, 1);
      if (result.slice && dim <= int64_t(result.slicedDim))
        ++result.slicedDim;
    }
    view = drop.getView();
  }
  result.argument = dyn_cast<BlockArgument>(view);
  auto type = cast<tile::ViewType>(view.getType());
  if (!result.argument || !hasSuitableFacts(type) || result.box[type.getUnit()] == 1)
    return std::nullopt;
  result.unit = type.getUnit();
  if (result.slice && result.slicedDim == result.unit)
    return std::nullopt;
  result.unitOfTile = llvm::count_if(ArrayRef<int64_t>(result.box).take_front(result.unit), [](int64_t extent) { return extent != 1; });
  return result;
}
} // namespace kpkg::kgpu
