// Computes the corners of tensor maps for windows over images.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/Windows.h"

#include <optional>

namespace kpkg::package {

using plan::LaunchArg;
using plan::LaunchStep;

namespace {
/// A window's traversal of one extent, in numbers: pixel * stride + start + tap * step.
struct Walk {
  int64_t extent = 0, count = 0, stride = 0, start = 0, step = 0, taps = 0;

  int64_t lastPixel() const { return (count - 1) * stride + start; }
  int64_t upperCorner() const { return lastPixel() - (extent - 1); }
  int64_t farthestTap() const { return taps > 1 ? (taps - 1) * step : 0; }
};

/// Returns nothing if a number is unknown before the launch, or too large for the TMA.
std::optional<Walk> walkOf(const TensorMap &map, size_t i, const LaunchStep &launch) {
  constexpr int64_t most = int64_t(1) << 32;
  const manifest::Window &window = *map.window;
  Walk walk;
  for (auto [arg, value] : {std::pair(window.counts[i], &walk.count),
                            {window.strides[i], &walk.stride},
                            {window.starts[i], &walk.start},
                            {window.steps[i], &walk.step}}) {
    const LaunchArg &given = launch.args[size_t(arg)];
    if (given.kind != LaunchArg::Kind::Int || given.integer > most || given.integer < -most)
      return std::nullopt;
    *value = given.integer;
  }
  auto [arg, dimension] = window.taps[i];
  const plan::View &taps = launch.args[size_t(arg)].view;
  walk.taps = taps.buffer >= 0 ? taps.shape[size_t(dimension)] : 0;
  walk.extent = launch.args[size_t(map.arg)].view.shape[i + 1];
  // The remaining products do not overflow: strides and steps are checked before multiplication.
  if (walk.taps > most || walk.extent > most)
    return std::nullopt;
  return walk;
}

std::string unmappableWalk(const Walk &walk, const device::TensorWindowLimits &limits) {
  auto isCorner = [&](int64_t corner) { return corner >= -limits.mostCorner - 1 && corner <= limits.mostCorner; };
  if (walk.count < 1 || walk.stride < 1 || walk.stride > limits.maxStep)
    return "windows at least 1 and at most " + std::to_string(limits.maxStep) + " apart, found " +
           std::to_string(walk.count) + " with a stride of " + std::to_string(walk.stride);
  if (!isCorner(walk.start) || !isCorner(walk.upperCorner()))
    return "windows from " + std::to_string(-limits.mostCorner - 1) + " to " + std::to_string(limits.mostCorner) +
           " beside its first and last elements, found " + std::to_string(walk.start) + " and " +
           std::to_string(walk.upperCorner());
  if (walk.step < 0 || walk.step > limits.mostMove || walk.farthestTap() > limits.mostMove)
    return "taps up to " + std::to_string(limits.mostMove) + " apart, found " + std::to_string(walk.taps) +
           " at a distance of " + std::to_string(walk.step);
  return {};
}
} // namespace

std::string unmappableWindow(const TensorMap &map, const LaunchStep &launch, const device::TensorMapLimits &limits) {
  if (!map.window) // boxes only; limits exist for 3 to 5 dimensions
    return {};
  const device::TensorWindowLimits &ofRank = limits.windows[map.box.size() - 3];
  for (size_t i = 0; i < map.window->taps.size(); ++i) {
    std::optional<Walk> walk = walkOf(map, i, launch);
    std::string what = walk ? unmappableWalk(*walk, ofRank) : "windows that are known when the call is planned";
    if (!what.empty())
      return what;
  }
  return {};
}

std::array<device::TensorWindow, device::TensorMapShape::maxRank - 2> tensorWindows(const TensorMap &map,
                                                                                    const LaunchStep &launch) {
  std::array<device::TensorWindow, device::TensorMapShape::maxRank - 2> windows;
  const size_t extents = map.window->taps.size();
  for (size_t i = 0; i < extents; ++i) {
    Walk walk = *walkOf(map, i, launch);
    // The map has the last extent first.
    windows[extents - 1 - i] = {int32_t(walk.start), int32_t(walk.upperCorner()), uint32_t(walk.stride)};
  }
  return windows;
}

} // namespace kpkg::package
