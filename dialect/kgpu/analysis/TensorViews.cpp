// Finds parts of views that tensor maps can describe.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/TensorViews.h"
#include "dialect/tile/transforms/IndexFacts.h"
#include "dialect/tile/transforms/WindowGathers.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
constexpr int64_t kAlignment = 16, kMostDimensions = 5;

/// Returns why no tensor map can describe any box of the kernel argument.
WhyNot whyNoMap(tile::ViewType view) {
  tile::ViewFacts facts = view.getFacts();
  if (view.getUnit() < 0)
    return "no dimension of the tensor is known to have stride 1";
  if (facts.align % kAlignment != 0)
    return "the tensor's address is not known to be a multiple of 16 bytes";
  if (facts.divisible * view.getElementBytes() % kAlignment != 0)
    return "the tensor's strides are not known to be multiples of 16 bytes";
  if (facts.index != 32)
    return "the tensor's extents may exceed 32 bits";
  if (view.getRank() > kMostDimensions)
    return "the tensor has more than five dimensions";
  return std::nullopt;
}

constexpr const char *kNoArgument = "the view is no part of a tensor argument of the kernel";
} // namespace

ResultOrWhy<TensorView> tensorView(Value view, ValueRange offsets, ArrayRef<int64_t> tile) {
  TensorView result;
  result.offsets.assign(offsets.begin(), offsets.end());
  result.box.assign(tile.begin(), tile.end());
  if (tile.size() > 2)
    return Refusal{"the tile has more than two dimensions"};
  if (llvm::is_contained(tile, 1))
    return Refusal{"an extent of the tile is 1"};
  while (true) {
    if (auto slice = view.getDefiningOp<tile::SliceOp>()) {
      if (result.slice)
        return Refusal{"the view is a slice of a slice"};
      if (result.box[slice.getDimension()] == 1)
        return Refusal{"the view is a slice along a dimension of which the tile has one element"};
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
  if (!result.argument)
    return Refusal{kNoArgument};
  if (WhyNot why = whyNoMap(type))
    return Refusal{*why};
  if (result.box[type.getUnit()] == 1)
    return Refusal{"the tile has one element along the dimension of stride 1"};
  result.unit = type.getUnit();
  if (result.slice && result.slicedDim == result.unit)
    return Refusal{"the view is a slice along the dimension of stride 1"};
  // Copies that begin elsewhere along this dimension are illegal instructions (measured on an H200).
  if (tile::divisorOf(result.offsets[result.unit]) * type.getElementBytes() % kAlignment != 0)
    return Refusal{"the tile is not known to begin at a multiple of 16 bytes in its row"};
  result.unitOfTile =
      llvm::count_if(ArrayRef<int64_t>(result.box).take_front(result.unit), [](int64_t extent) { return extent != 1; });
  return result;
}

static ResultOrWhy<TensorView> windowView(Value view, WindowAttr window, ArrayRef<int64_t> tile) {
  TensorView result;
  auto type = cast<tile::ViewType>(view.getType());
  result.argument = dyn_cast<BlockArgument>(view);
  result.window = window;
  if (!result.argument)
    return Refusal{kNoArgument};
  if (WhyNot why = whyNoMap(type))
    return Refusal{*why};
  if (type.getUnit() != type.getRank() - 1)
    return Refusal{"the channels of the images are not contiguous"};
  result.box.assign(type.getRank(), 1);
  result.box.front() = tile[0];
  result.box.back() = tile[1];
  result.unit = type.getUnit();
  result.unitOfTile = 1;
  return result;
}

ResultOrWhy<TensorView> tensorView(tile::GatherOp gather) {
  std::optional<tile::WindowGather> found = tile::windowGather(gather);
  if (!found)
    return Refusal{"the gather's indices are not those of a window that moves over images with contiguous channels"};
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

ResultOrWhy<TensorView> tensorView(Im2colLoadOp load) {
  ResultOrWhy<TensorView> result =
      windowView(load.getView(), load.getWindow(), cast<RankedTensorType>(load.getType()).getShape());
  if (result) {
    result->offsets.assign(load.getOffsets().begin(), load.getOffsets().end());
    result->taps.assign(load.getTaps().begin(), load.getTaps().end());
  }
  return result;
}
} // namespace kpkg::kgpu
