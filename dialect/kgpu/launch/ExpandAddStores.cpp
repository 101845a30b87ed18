// Expands additions of tiles to memory into atomic ops on elements, where a tensor map cannot do the addition.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.add_store %v, %y[%r, %c] : tensor<64x128xf32>, !tile.view<2xf32, mut>
// After:  tile.atomic add %v, %y[%i, %j] : tensor<64x128xf32>, ..., tensor<64x128xindex>
//
// On entry: a configured kernel without layouts.
// On exit: each remaining tile.add_store adds the result of a wgmma product to a view that a tensor map can describe.
#include "dialect/tile/transforms/ExpandAddStores.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/StorePanels.h"
#include "dialect/kgpu/analysis/StreamedDots.h"

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
    markAnalysesPreserved<StreamedDots>(); // products and their operands have not changed
  }
};
} // namespace
} // namespace kpkg::kgpu
