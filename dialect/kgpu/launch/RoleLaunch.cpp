// Chooses the launch of a warp-specialised kernel, with a producer warp and consumer warpgroups.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/launch/RoleLaunch.h"
#include "dialect/kgpu/analysis/ClusterTiles.h"
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/kgpu/ir/Walks.h"

namespace kpkg::kgpu {
using tile::Hint;

tile::ForTilesOp onlyTilesOf(tile::KernelOp kernel) {
  llvm::SmallVector<tile::ForTilesOp> all = opsIn<tile::ForTilesOp>(kernel);
  return all.size() == 1 && all.front()->getParentOp() == kernel ? all.front() : tile::ForTilesOp();
}

std::optional<Launch> launchWithRoles(tile::KernelOp kernel, const TargetModel &target) {
  std::vector<StreamedDot> dots = streamedDots(kernel, target);
  bool wantsProducer = kernel.getHint(Hint::Roles) == kRolesWithProducer;
  // The producer warp gets a whole warpgroup, because registers are reallocated between warpgroups.
  unsigned consumers = consumersFor(dots, wantsProducer);
  if (consumers == 0 && wantsProducer) { // a hint that does not fit has no effect
    wantsProducer = false;
    consumers = consumersFor(dots);
  }
  if (consumers == 0)
    return std::nullopt;
  Launch launch{.threads = (consumers + 1) * kWarpgroupThreads,
                .minCtas = kernel.getHint(Hint::Occupancy),
                .consumers = consumers};
  if (unsigned cluster = kernel.getHint(Hint::Cluster); cluster > 1 && clusterCoordinate(kernel, dots, target, cluster))
    launch.cluster = cluster;
  // More than two consumers beside a producer warpgroup would leave too few registers for each.
  if (wantsProducer && launch.cluster == 1 && launch.minCtas < 2 && consumers <= 2 && suitsProducer(dots)) {
    launch.producers = 1;
    launch.threads += kWarpgroupThreads;
  }
  launch.dynamic =
      launch.cluster == 1 && launch.producers == 0 && kernel.getHint(Hint::Dynamic) != 0 && onlyTilesOf(kernel);
  return launch;
}
} // namespace kpkg::kgpu
