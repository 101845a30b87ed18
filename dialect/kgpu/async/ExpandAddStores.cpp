// Adds tiles to memory element by element where tensor maps cannot.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.add_store %v, %y[%r, %c] : tensor<64x128xf32>, !tile.view<2xf32, mut>
// After:  tile.atomic add %v, %y[%i, %j] : tensor<64x128xf32>, ..., tensor<64x128xindex>
//
// On entry: a configured kernel without layouts. On exit: what is left of tile.add_store adds results of warpgroups'
// products to views that tensor maps can describe.
#include "dialect/tile/transforms/ExpandAddStores.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/async/TensorStores.h"

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUEXPANDADDSTORES
#include "dialect/kgpu/Passes.h.inc"

namespace {
struct ExpandAddStores final : impl::KgpuExpandAddStoresBase<ExpandAddStores> {
  void runOnOperation() override {
    unsigned consumers = getLaunch(getOperation()).consumers;
    getOperation().walk([&](tile::AddStoreOp store) {
      if (!isAddedByMap(store, consumers))
        tile::expandAddStore(store);
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
