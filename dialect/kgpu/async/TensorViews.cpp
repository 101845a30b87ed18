// Finds parts of views that tensor maps can describe.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/async/TensorViews.h"
#include "dialect/tile/transforms/IndexFacts.h"
#include "dialect/tile/transforms/WindowGathers.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
constexpr int64_t kAlignment = 16, kMostDimensions = 5;

bool hasSuitableFacts(tile::ViewType view) {
  tile::ViewFacts facts = view.getFacts();
  return view.getUnit() >= 0 && facts.align % kAlignment == 0 &&
         facts.divisible * view.getElementBytes() % kAlignment == 0 && facts.index == 32 &&
         view.getRank() <= kMostDimensions;
}
} // namespace

std::optional<TensorView> tensorView(Value view, ValueRange offsets, ArrayRef<int64_t> tile) {
  TensorView result;
  result.offsets.assign(offsets.begin(), offsets.end());
  result.box.assign(tile.begin(), tile.end());
  if (tile.size() > 2 || llvm::is_contained(tile, 1))
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
  // Copies that begin elsewhere along this dimension are illegal instructions (measured on an H200).
  if (tile::divisorOf(result.offsets[result.unit]) * type.getElementBytes() % kAlignment != 0)
    return std::nullopt;
  result.unitOfTile =
      llvm::count_if(ArrayRef<int64_t>(result.box).take_front(result.unit), [](int64_t extent) { return extent != 1; });
  return result;
}

static std::optional<TensorView> windowView(Value view, WindowAttr window, ArrayRef<int64_t> tile) {
  TensorView result;
  auto type = cast<tile::ViewType>(view.getType());
  result.argument = dyn_cast<BlockArgument>(view);
  result.window = window;
  if (!result.argument || !hasSuitableFacts(type) || type.getUnit() != type.getRank() - 1)
    return std::nullopt;
  result.box.assign(type.getRank(), 1);
  result.box.front() = tile[0];
  result.box.back() = tile[1];
  result.unit = type.getUnit();
  result.unitOfTile = 1;
  return result;
}

std::optional<TensorView> tensorView(tile::GatherOp gather) {
  std::optional<tile::WindowGather> found = tile::windowGather(gather);
  if (!found)
    return std::nullopt;
  SmallVector<int64_t> counts, strides, starts, steps, taps;
  for (const tile::WindowDimension &dim : found->dims) {
    counts.push_back(dim.count);
    strides.push_back(dim.stride);
    starts.push_back(dim.start);
    steps.push_back(dim.step);
    taps.append({int64_t(dim.tapsArgument), int64_t(dim.tapsDim)});
  }
  auto window = WindowAttr::get(gather.getContext(), counts, strides, starts, steps, taps);
  return windowView(found->view, window, cast<RankedTensorType>(gather.getType()).getShape());
}

std::optional<TensorView> tensorView(Im2colLoadOp load) {
  std::optional<TensorView> result =
      windowView(load.getView(), load.getWindow(), cast<RankedTensorType>(load.getType()).getShape());
  if (result) {
    result->offsets.assign(load.getOffsets().begin(), load.getOffsets().end());
    result->taps.assign(load.getTaps().begin(), load.getTaps().end());
  }
  return result;
}
} // namespace kpkg::kgpu
