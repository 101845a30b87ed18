// Lets the CTAs of a cluster copy operands for each other that all of them need.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %ring = kgpu.ring %barriers : ...
//         kgpu.tensor_load %a[%m, %k] map 0 to %left plus 0 signals %ring[%use]                 boxes of 128 x 64
//         kgpu.tensor_load %b[%k, %n] map 1 to %right plus 0 signals %ring[%use]                %n comes from
//         kgpu.cluster_rank
// After:  %ring = kgpu.ring cluster %barriers : ...
//         kgpu.tensor_load %a[%m, %k] map 0 to %left plus 0 signals %ring[%use] multicast 0     boxes of 64 x 64,
//         before others kgpu.tensor_load %b[%k, %n] map 1 to %right plus 0 signals %ring[%use]
//
// On entry: a kernel with roles, after kgpu-split-roles. On exit: in kernels with clusters, what has the same place for
// all CTAs of one is copied once for all of them, each copying a part, and rings through which it goes are of the
// cluster. Nothing is keyed to what a product is: an operand is shared when its coordinates do not depend on the number
// of the CTA in its cluster. What is swizzled is parted between rows after which the swizzle begins again. Every slot
// still gets all of its bytes, so what is announced stays as it is.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/schedule/ClusterTiles.h"
#include "dialect/kgpu/schedule/Dependents.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUMULTICAST
#include "dialect/kgpu/Passes.h.inc"

namespace {
class Sharing {
public:
  Sharing(tile::KernelOp kernel, unsigned cluster) : kernel(kernel), cluster(cluster), maps(tensorMapsOf(kernel)) {}

  LogicalResult run() {
    SmallVector<Value> ranks;
    kernel.walk([&](Operation *op) {
      if (isa<ClusterRankOp, CtaIdOp>(op))
        ranks.push_back(op->getResult(0));
    });
    differing = dependents(kernel, ranks);
    DenseMap<uint64_t, SmallVector<TensorLoadOp>> shared, others; // by map
    kernel.walk([&](TensorLoadOp load) { (isCommon(load) ? shared : others)[load.getMap()].push_back(load); });
    if (shared.empty())
      return kernel.emitError() << "has clusters of " << cluster << " CTAs, but no operand that all of them read";
    for (uint64_t number = 0, count = maps.size(); number < count; ++number)
      if (auto found = shared.find(number); found != shared.end())
        share(found->second, number, /*replaces=*/!others.contains(number));
    kernel->setAttr(kTensorMapsAttribute,
                    ArrayAttr::get(kernel.getContext(), SmallVector<Attribute>(maps.begin(), maps.end())));
    return success();
  }

private:
  std::optional<SharedBox> boxOf(TensorLoadOp load) const {
    TensorMapAttr map = maps[load.getMap()];
    auto view = load.getView().getType();
    return map.getWindow() ? std::nullopt : sharedBox(map.getBox(), view.getUnit(), view.getElementBytes(), cluster);
  }

  bool isCommon(TensorLoadOp load) const {
    return boxOf(load) && llvm::none_of(load.getOffsets(), [&](Value offset) { return differing.contains(offset); });
  }

  /// Loads by one map, which their part takes the place of where no other load uses it.
  void share(ArrayRef<TensorLoadOp> loads, uint64_t number, bool replaces) {
    SharedBox box = *boxOf(TensorLoadOp(loads.front()));
    TensorMapAttr whole = maps[number];
    auto part =
        TensorMapAttr::get(kernel.getContext(), whole.getArg(), box.part, whole.getSwizzle(), whole.getWindow());
    if (replaces) {
      maps[number] = part;
    } else {
      number = maps.size();
      maps.push_back(part);
    }
    for (TensorLoadOp load : loads) {
      load.setMap(number);
      load.setMulticast(box.dim);
      load.getRing().getDefiningOp<RingOp>().setCluster(true);
    }
    // What others wait for comes first: measured on an H200, up to 2 % of a large product.
    for (TensorLoadOp load : loads)
      for (Operation *before = load->getPrevNode(); before; before = before->getPrevNode()) {
        auto own = dyn_cast<TensorLoadOp>(before);
        if (isa<AcquireOp>(before))
          break;
        if (own && !own.getMulticast())
          own->moveAfter(load);
      }
  }

  tile::KernelOp kernel;
  unsigned cluster;
  SmallVector<TensorMapAttr> maps;
  DenseSet<Value> differing; ///< between CTAs of a cluster
};

struct Multicast final : impl::KgpuMulticastBase<Multicast> {
  void runOnOperation() override {
    Launch launch = getLaunch(getOperation());
    if (launch.consumers != 0 && launch.cluster > 1 && failed(Sharing(getOperation(), launch.cluster).run()))
      signalPassFailure();
  }
};
} // namespace
} // namespace kpkg::kgpu
