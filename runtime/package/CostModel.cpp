// Evaluates an instance's cost formulas: operations and bytes of a launch, and an estimate of its time for choosing
// among alternatives.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/package/CostModel.h"
#include "runtime/package/TripCount.h"

#include "runtime/chips/Chips.h"

#include <algorithm>
#include <cmath>

namespace kpkg::package {

using plan::LaunchStep;

/// Returns the chip whose numbers estimate the instance's time. PTX has the oldest chip that runs it. Processors of
/// hosts have no numbers of their own.
static const chips::Chip &chipOf(const Instance &instance) {
  std::string_view target = instance.target;
  constexpr std::string_view ptx = "compute_";
  const chips::Chip *chip = chips::find(
      target.substr(0, ptx.size()) == ptx ? "sm_" + std::string(target.substr(ptx.size())) : std::string(target));
  return chip ? *chip : chips::reference;
}

/// Bytes of the L2 cache's smallest transfer.
static constexpr int64_t sectorBytes = 32;

/// Returns how many times as long boxes of the view take as boxes whose rows begin with lines.
static double slownessOfRows(const TensorMap &map, const plan::View &view, const chips::Chip &chip) {
  bool crossesLines = false, crossesSectors = false;
  for (int32_t dim = 0; dim < view.rank; ++dim) {
    if (dim == map.unit || map.box[size_t(dim)] <= 1 || view.shape[size_t(dim)] <= 1)
      continue;
    int64_t stride = plan::dtypeBytes(view.dtype, view.strides[size_t(dim)]);
    crossesLines |= stride % chip.cacheLineBytes != 0;
    crossesSectors |= stride % sectorBytes != 0;
  }
  return crossesSectors ? chip.heuristics.slownessOfSectors : crossesLines ? chip.heuristics.slownessOfLines : 1;
}

/// Returns the ratio of cache bandwidth used by boxes to the bytes that they bring to all CTAs of a cluster. Multicast
/// reads bytes for other CTAs only once.
static double cacheShare(const LaunchShape &shape, const LaunchStep &launch, const chips::Chip &chip) {
  double brought = 0, taken = 0;
  for (const TensorMap &map : shape.tensorMaps) {
    const plan::View &view = launch.args[size_t(map.arg)].view;
    if (view.buffer < 0 || map.copies == 0)
      continue;
    double bytes = double(map.copies) * plan::dtypeBits(view.dtype) / 8;
    for (uint32_t extent : map.box)
      bytes *= extent;
    brought += bytes * map.sharedBy;
    taken += bytes * slownessOfRows(map, view, chip);
  }
  return brought > 0 ? taken / brought : 1;
}

/// Returns nothing if a formula uses a number that the launch does not know.
static std::optional<double> evaluate(const std::vector<CostTerm> &terms, const LaunchStep &launch) {
  double sum = 0;
  for (const CostTerm &term : terms) {
    double product = term.count;
    for (const CostFactor &factor : term.factors) {
      if (factor.kind == CostFactor::Kind::Blocks) {
        product *= launch.persistent ? 1 : double(launch.grid[0]) * double(launch.grid[1]) * double(launch.grid[2]);
        continue;
      }
      if (factor.kind == CostFactor::Kind::Count) {
        std::optional<double> trips = evaluate(factor.steps, launch);
        if (!trips)
          return std::nullopt;
        product *= *trips;
        continue;
      }
      int64_t extent = launch.args[factor.argument].view.shape[factor.dimension];
      if (factor.kind == CostFactor::Kind::Share) {
        product /= double(std::max<int64_t>(extent, 1));
        continue;
      }
      if (factor.kind == CostFactor::Kind::Tiles)
        extent = extent / factor.size + (extent % factor.size != 0);
      else if (factor.kind == CostFactor::Kind::Clipped)
        extent = std::min(extent, factor.size);
      product *= double(extent);
    }
    sum += product;
  }
  return sum;
}

Cost estimateCost(const Instance &instance, const LaunchStep &launch) {
  std::optional<double> flops = evaluate(instance.flops, launch), bytes = evaluate(instance.bytes, launch);
  return flops && bytes ? Cost{*flops, *bytes} : Cost();
}

std::optional<double> countTiles(const Instance &instance, const LaunchStep &launch) {
  return instance.tiles.empty() ? std::nullopt : evaluate(instance.tiles, launch);
}

std::optional<TimeEstimate> estimateTime(const Instance &instance, const LaunchStep &launch, int64_t processors) {
  if (!instance.work)
    return std::nullopt;
  const TileWork &work = *instance.work;
  const chips::Chip &chip = chipOf(instance);
  std::optional<double> count = launch.persistent
                                    ? countTiles(instance, launch)
                                    : double(launch.grid[0]) * double(launch.grid[1]) * double(launch.grid[2]);
  std::optional<double> flopsOfTile = evaluate(work.flops, launch), allBytes = evaluate(instance.bytes, launch);
  if (!count || !flopsOfTile || !allBytes)
    return std::nullopt;
  double tiles = std::max(*count, 1.0);
  double flops = *flopsOfTile, bytes = *allBytes / tiles;
  if (instance.launch) { // of a CTA, which may run several tiles side by side, or share one with other CTAs
    const LaunchShape &shape = *instance.launch;
    double share = double(shape.blocks) / double(shape.cluster);
    tiles = std::ceil(tiles / shape.blocks) * shape.cluster;
    flops *= share, bytes *= share * cacheShare(shape, launch, chip);
  }
  TimeEstimate estimate;
  estimate.rounds = std::ceil(tiles / double(std::max<int64_t>(processors, 1)));
  double held = std::min(double(work.resident), estimate.rounds), bandwidth = work.bytesPerCycle;
  if (instance.launch && instance.launch->shared)
    bandwidth = std::min(bandwidth, double(instance.launch->shared) * held / chip.heuristics.cyclesOfLatency);
  double rate = std::min(work.flopsPerCycle, work.flopsPerCycleAlone * held);
  estimate.cyclesPerRound = std::max(flops / rate, bytes / bandwidth) + chip.heuristics.cyclesAroundTile / held;
  return estimate;
}

} // namespace kpkg::package
