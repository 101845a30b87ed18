// Interprets the hints of @schedule, and explains which of them the code of a kernel does not follow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/launch/Hints.h"
#include "dialect/kgpu/analysis/ClusterTiles.h"
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/kgpu/analysis/Work.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/kgpu/launch/RoleLaunch.h"

namespace kpkg::kgpu {

std::optional<std::string> whyNotDynamic(tile::KernelOp kernel, const TargetModel &target) {
  if (kernel.getHint(Hint::Dynamic) == 0)
    return std::nullopt;
  if (!onlyTilesOf(kernel))
    return std::string("only a kernel that consists of one loop over `output_tiles` takes tiles from a counter");
  std::optional<Launch> launch = launchWithRoles(kernel, target);
  if (!launch)
    return std::string("the thread that copies operands of products of warpgroups takes tiles from a counter, and its "
                       "products are not of such");
  if (!launch->dynamic)
    return std::string("the blocks of a cluster take tiles together, and not from a counter");
  return std::nullopt;
}

static bool multiplies(tile::KernelOp kernel) { return containsOp<tile::DotOp>(kernel); }

std::optional<std::string> whyNoCluster(tile::KernelOp kernel, const TargetModel &target) {
  unsigned cluster = kernel.getHint(Hint::Cluster);
  if (cluster < 2)
    return std::nullopt;
  if (containsOp<tile::ScratchOp>(kernel))
    return std::string("the blocks of a cluster would have scratch memory each, and their threads need all of it");
  if (!multiplies(kernel))
    return std::nullopt;
  if (target.maxCluster < cluster)
    return "clusters of " + std::to_string(cluster) + " blocks are more than the chip has";
  if (!launchWithRoles(kernel, target))
    return std::string(
        "blocks of a cluster share operands of products of warpgroups, and its products are not of such");
  if (!clusterCoordinate(kernel, target, cluster))
    return std::string("no blocks of a cluster would go in step and read the same operands");
  return std::nullopt;
}

bool asksFor(const Launch &launch, tile::KernelOp kernel, const TargetModel &target, Hint hint) {
  unsigned value = kernel.getHint(hint);
  if (value == 0)
    return false;
  switch (hint) {
  case Hint::Warps:
    return launch.consumers == 0 && launch.threads == value * target.warpSize;
  case Hint::Occupancy:
    return launch.minCtas == value;
  case Hint::Cluster:
    return launch.cluster == value;
  case Hint::Stages:
    return launch.consumers == 0 && launch.stages == value && !multiplies(kernel);
  case Hint::Peel:
    return launch.peels;
  case Hint::Dynamic:
    return launch.dynamic;
  case Hint::Roles:
    return launch.producers != 0;
  }
  llvm_unreachable("a hint outside Hints.def");
}

namespace {
using Why = std::optional<std::string>; ///< nothing if the code follows the hint

constexpr const char *kNoWarpgroups = "its products are not of warpgroups";

Why whyNotWarps(unsigned warps, tile::KernelOp kernel, const TargetModel &target, const Launch &launch) {
  if (launch.threads == warps * target.warpSize)
    return std::nullopt;
  Launch asked = launch;
  asked.threads = warps * target.warpSize;
  if (std::optional<int64_t> registers = excessiveRegisters(kernel, target, asked))
    return "each thread would hold " + std::to_string(*registers) + " registers of tiles, and has " +
           std::to_string(target.maxRegisters);
  return "a thread block has " + std::to_string(launch.threads / target.warpSize) + " warps";
}

Why whyNotOccupancy(unsigned wanted, const TargetModel &target, const Outcome &outcome) {
  if (outcome.resident >= wanted)
    return std::nullopt;
  std::string held = "a multiprocessor holds " + std::to_string(outcome.resident);
  if (target.residentCtas(outcome.launch.threads, 1, 0) < wanted)
    return held + " of " + std::to_string(outcome.launch.threads) + " threads";
  if (target.residentCtas(outcome.launch.threads, 1, outcome.launch.shared) < wanted)
    return held + " with " + std::to_string(outcome.launch.shared) + " bytes of shared memory each";
  return held;
}

Why whyNotClusters(unsigned wanted, tile::KernelOp kernel, const TargetModel &target, const Launch &launch) {
  if (launch.cluster == wanted || wanted == 1)
    return std::nullopt;
  if (Why why = whyNoCluster(kernel, target))
    return why;
  if (target.maxCluster < wanted)
    return target.maxCluster == 1 ? std::string("the chip has no clusters")
                                  : "the chip has clusters of " + std::to_string(target.maxCluster);
  return launch.blocks > 1 ? std::string("a thread block has several kernel blocks")
                           : std::string("its thread blocks do not share the work of one");
}

Why whyNotStages(tile::KernelOp kernel, const Outcome &outcome) {
  if (outcome.hasRings)
    return std::nullopt;
  if (multiplies(kernel))
    return std::string("operands of its products are not copied ahead");
  if (kernel.getHint(Hint::Warps) == 0 && kernel.getHint(Hint::Occupancy) == 0 && kernel.getHint(Hint::Cluster) == 0)
    return std::string("in a kernel without products it takes `warps`, `occupancy` or `cluster` beside it");
  return std::string("none of its loads can be under way steps ahead");
}

Why whyNotPeel(const Launch &launch) {
  if (launch.consumers == 0)
    return std::string(kNoWarpgroups);
  return launch.peels ? Why()
                      : std::string("no loop with one or two products has a choice of a tile that begins or ends with "
                                    "the loop's counter");
}

Why whyNotRoles(unsigned roles, tile::KernelOp kernel, const TargetModel &target, const Launch &launch) {
  if (roles != kRolesWithProducer)
    return std::string("only `roles=3` has a meaning");
  if (launch.producers != 0)
    return std::nullopt;
  std::optional<Launch> possible = launchWithRoles(kernel, target);
  if (!possible)
    return std::string(kNoWarpgroups);
  if (possible->cluster > 1 || possible->minCtas > 1)
    return std::string("`cluster` and `occupancy` leave no room for another warpgroup");
  if (possible->consumers > 2)
    return "beside " + std::to_string(possible->consumers) +
           " warpgroups that multiply another one finds too few registers";
  return std::string("no warpgroup could make operands of its products alone: they have to be computed in the kernel, "
                     "of 64 rows, 16 bits and rows of 128 bytes");
}
Why whyNot(Hint hint, unsigned value, tile::KernelOp kernel, const TargetModel &target, const Outcome &outcome) {
  const Launch &launch = outcome.launch;
  switch (hint) {
  case Hint::Warps:
    return whyNotWarps(value, kernel, target, launch);
  case Hint::Occupancy:
    return whyNotOccupancy(value, target, outcome);
  case Hint::Cluster:
    return whyNotClusters(value, kernel, target, launch);
  case Hint::Stages:
    return whyNotStages(kernel, outcome);
  case Hint::Peel:
    return whyNotPeel(launch);
  case Hint::Dynamic:
    return launch.dynamic ? Why() : whyNotDynamic(kernel, target).value_or(kNoWarpgroups);
  case Hint::Roles:
    return whyNotRoles(value, kernel, target, launch);
  }
  llvm_unreachable("a hint outside Hints.def");
}
} // namespace

bool hasRings(tile::KernelOp laidOut) { return containsOp<FetchOp, RingOp, AsyncWaitOp>(laidOut); }

llvm::SmallVector<DroppedHint> droppedHints(tile::KernelOp kernel, const TargetModel &target, const Outcome &outcome) {
  llvm::SmallVector<DroppedHint> dropped;
  for (const tile::HintRecord &record : tile::kHints)
    if (unsigned value = kernel.getHint(record.hint))
      if (Why why = whyNot(record.hint, value, kernel, target, outcome))
        dropped.push_back({record.hint, value, *why, record.hint == Hint::Occupancy});
  return dropped;
}

std::optional<int64_t> excessiveRegisters(tile::KernelOp kernel, const TargetModel &target, const Launch &launch) {
  constexpr int64_t kTimesTooMany = 2;
  const Work work = measure(kernel, target);
  int64_t registers = work.liveRegisters / (int64_t(launch.threads) * launch.cluster) * launch.blocks;
  bool multiplies = work.dotElements != 0 || work.mmaElements != 0;
  if (multiplies || registers <= kTimesTooMany * target.maxRegisters)
    return std::nullopt;
  return registers;
}
} // namespace kpkg::kgpu
