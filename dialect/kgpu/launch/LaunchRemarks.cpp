// Emits remarks on a kernel's launch: which units multiply, what the blocks of a cluster share, how tiles are assigned.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/launch/LaunchRemarks.h"
#include "dialect/kgpu/analysis/DotLayout.h"
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/kgpu/analysis/Work.h"
#include "dialect/kgpu/ir/LaunchOptimisations.h"
#include "dialect/kgpu/ir/RemarkText.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/kgpu/launch/Hints.h"
#include "dialect/kgpu/launch/PrefetchLoads.h"
#include "dialect/kgpu/launch/RoleLaunch.h"
#include "dialect/tile/ir/ThreadOps.h"

namespace kpkg::kgpu {
namespace {
constexpr Optimisation kWarpgroups{"kgpu-configure", "product by warpgroups"};
constexpr Optimisation kTensorCores{"kgpu-configure", "product by tensor cores"};
constexpr Optimisation kSparse{"kgpu-configure", "2:4-sparse product"};
constexpr Optimisation kClusters{"kgpu-configure", "operands shared by a cluster"};
constexpr Optimisation kDynamic{"kgpu-configure", "dynamic tile scheduler"};
constexpr Optimisation kProducer{"kgpu-configure", "a warpgroup that computes operands"};
constexpr Optimisation kPersistent{"kgpu-configure", "persistent blocks"};
constexpr Optimisation kOverlap{"kgpu-configure", "overlap with the kernel before"};

void remarkOnProducts(llvm::ArrayRef<tile::DotOp> dots, tile::KernelOp kernel, const Launch &launch,
                      const TargetModel &target) {
  if (launch.consumers != 0) {
    for (tile::DotOp dot : dots)
      remarkApplied(dot, kWarpgroups,
                    "by " + counted(launch.consumers, "warpgroup") + ", while another warp copies operands ahead");
    return;
  }
  StreamRefusal refusal;
  if (std::vector<StreamedDot> streams = streamedDots(kernel, target, &refusal);
      !streams.empty() && consumersFor(streams) == 0)
    refusal = whyNoConsumers(streams);
  if (refusal.op)
    remarkRefused(refusal.op, kWarpgroups, refusal.why);
  else
    remarkRefused(dots.front(), kWarpgroups, "this launch has none");
  for (tile::DotOp dot : dots)
    remarkOn(dot, kTensorCores, whyNotMmaSync(dot, target),
             "each warp multiplies operands in its registers (mma.sync)");
}

/// Emits remarks on products whose left operand has 2:4 sparsity.
void remarkOnSparsity(llvm::ArrayRef<tile::DotOp> dots, const Launch &launch) {
  for (tile::DotOp dot : dots)
    if (dot.getPositions() && launch.consumers != 0)
      remarkApplied(dot, kSparse, "tensor cores skip the zeros");
    else if (dot.getPositions())
      remarkRefused(dot, kSparse, "only warpgroups skip zeros; the operand is expanded to a dense one");
}

/// Emits remarks on properties of products by warpgroups, if a hint asks for them.
void remarkOnHints(tile::KernelOp kernel, const Launch &launch, const TargetModel &target) {
  if (launch.cluster > 1)
    remarkApplied(kernel, kClusters, "clusters of " + std::to_string(launch.cluster) + " blocks");
  else if (target.maxCluster > 1)
    remarkRefused(kernel, kClusters,
                  whyNoCluster(kernel, target)
                      .value_or(kernel.getHint(Hint::Cluster) > 1 ? "this launch does without"
                                                                  : "`@schedule(cluster=2)` would ask for it"));
  if (launch.dynamic)
    remarkApplied(kernel, kDynamic, "a block takes its next tile from a counter");
  else
    remarkRefused(kernel, kDynamic,
                  whyNotDynamic(kernel, target)
                      .value_or(kernel.getHint(Hint::Dynamic) != 0 ? "this launch does without"
                                                                   : "`@schedule(dynamic=1)` would ask for it"));
  if (launch.producers != 0)
    remarkApplied(kernel, kProducer, "it publishes them to the warpgroups that multiply");
}

/// Emits remarks on loads that could be issued earlier, but for which the launch leaves no registers.
void remarkOnRegisters(tile::KernelOp kernel, const Launch &launch) {
  auto wouldChange = [&](llvm::function_ref<bool(tile::KernelOp)> moveLoads) {
    mlir::OwningOpRef<tile::KernelOp> copy = kernel.clone();
    return moveLoads(*copy);
  };
  if (!launch.earlyLoads && wouldChange([](tile::KernelOp copy) { return hoistLoads(copy); }))
    remarkRefused(kernel, kEarlyLoads, "this launch leaves no registers for loads that are issued early");
  if (!launch.prefetch && wouldChange([&](tile::KernelOp copy) { return prefetchLoads(copy, launch.stages != 0); }))
    remarkRefused(kernel, kPrefetch, "this launch leaves no registers for loads in flight");
}

/// Emits remarks on loops whose data no ring brings ahead.
void remarkOnStages(tile::KernelOp kernel, const Launch &launch, const TargetModel &target) {
  auto hasLoads = [](mlir::Block &block) { return !block.getOps<tile::LoadOp>().empty(); };
  auto refuseLoads = [](mlir::Operation *op) {
    remarkRefused(op, kRingLoads,
                  "this launch has no stages; `@schedule(stages=)` beside `warps`, `occupancy` or `cluster` asks for "
                  "them");
  };
  mlir::Block &body = kernel.getBody().front();
  if (launch.stages == 0 && !containsOp<tile::DotOp>(kernel)) {
    if (launch.persistent && hasLoads(body)) // The kernel becomes a loop over blocks.
      refuseLoads(kernel);
    for (auto loop : body.getOps<mlir::scf::ForOp>())
      if (!launch.persistent && hasLoads(*loop.getBody()))
        refuseLoads(loop);
  }
  for (auto loop : opsIn<mlir::scf::ForOp>(kernel))
    if (launch.stages < 2 &&
        llvm::any_of(
            loop.getBody()->getOps<tile::DotOp>(), [&](tile::DotOp dot) { return !whyNotMmaSync(dot, target); }))
      remarkRefused(loop, kRingCopies, "this launch keeps the operands of one iteration in shared memory at a time");
}

WhyNot whyNotPersistent(const Work &work, const TargetModel &target) {
  if (work.loops)
    return "the kernel loops over its data itself";
  if (!work.reduces)
    return "no op combines the elements of a row, so that blocks wait for nothing";
  if (work.prints)
    return "the kernel prints or asserts";
  if (!work.isFetchable)
    return "a load is not known to suit copies of 16 bytes, by its address, strides or dimension of stride 1";
  if (!target.hasDistributedShared)
    return "the chip has no clusters";
  return "several blocks with rows of " + std::to_string(work.rowBytes) +
         " bytes on a multiprocessor hide each other's loads";
}
} // namespace

void remarkOnLaunch(tile::KernelOp kernel) {
  if (tile::isOfThreads(kernel))
    return; // the author has chosen the launch
  Launch launch = getLaunch(kernel);
  const TargetModel &target = targetOf(kernel);
  llvm::SmallVector<tile::DotOp> dots = opsIn<tile::DotOp>(kernel);
  if (!dots.empty())
    remarkOnProducts(dots, kernel, launch, target);
  remarkOnSparsity(dots, launch);
  if (launch.consumers != 0) {
    remarkOnHints(kernel, launch, target);
  } else {
    remarkOnRegisters(kernel, launch);
    remarkOnStages(kernel, launch, target);
  }
  if (launch.persistent || kernel.isPersistent())
    remarkApplied(kernel, kPersistent, "as many blocks as fit the chip, and each takes a tile after another");
  else if (dots.empty())
    remarkRefused(kernel, kPersistent, *whyNotPersistent(measure(kernel, target), target));
  if (launch.overlaps)
    remarkApplied(kernel, kOverlap, "blocks start before the kernel before has ended, and wait for it");
}
} // namespace kpkg::kgpu
