// Chooses threads, packing, cluster size and residency of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.kernel @rows(...) {...}
// After:  tile.kernel @rows(...) attributes {kgpu.launch = #kgpu.launch<threads = 128, min_ctas = 6>,
//                                            kgpu.target = #kgpu.target<"sm_90a">} {...}
//
// On entry: a kernel at tile level.
// On exit: the kernel has a target and a launch; nothing else has changed. A launch that the kernel had before stays.
// A candidate that does not exist is an error. Candidates.cpp lists the candidates, and explains them.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/launch/Candidates.h"
#include "dialect/kgpu/launch/LaunchRemarks.h"
#include "dialect/tile/ir/ThreadOps.h"

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUCONFIGURE
#include "dialect/kgpu/Passes.h.inc"

namespace {
struct KgpuConfigure final : impl::KgpuConfigureBase<KgpuConfigure> {
  using KgpuConfigureBase::KgpuConfigureBase;
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    if (!chip.empty()) {
      auto target =
          TargetAttr::getChecked([&] { return kernel.emitError(); }, &getContext(), llvm::StringRef(chip.getValue()));
      if (!target)
        return signalPassFailure();
      kernel->setAttr(tile::kTargetAttribute, target);
    }
    if (!kernel->hasAttr(tile::kTargetAttribute)) {
      kernel.emitError() << "has no attribute '" << tile::kTargetAttribute << "'";
      return signalPassFailure();
    }
    if (unsigned most = std::max(targetOf(kernel).maxCluster, 1u); tile::clusterSize(kernel) > most) {
      kernel.emitError() << "asks for clusters of " << tile::clusterSize(kernel) << " blocks, "
                         << llvm::StringRef(targetOf(kernel).name) << " has clusters of up to " << most;
      return signalPassFailure();
    }
    if (!kernel->hasAttr(kLaunchAttribute) && failed(chooseLaunch(kernel)))
      return signalPassFailure();
    if (getContext().getRemarkEngine())
      remarkOnLaunch(kernel);
  }

private:
  llvm::LogicalResult chooseLaunch(tile::KernelOp kernel) {
    llvm::SmallVector<Launch> all = candidates(kernel, targetOf(kernel));
    if (candidate >= all.size()) {
      kernel.emitError() << "has " << all.size() << " candidates for its launch, no number " << candidate.getValue();
      return llvm::failure();
    }
    setLaunch(kernel, all[candidate]);
    return llvm::success();
  }
};
} // namespace
} // namespace kpkg::kgpu
