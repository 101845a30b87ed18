// Writes a kernel's cost formulas into attributes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.kernel @add(...) {...}
// After:  tile.kernel @add(...) attributes {bytes = "12*blocks*clip(0,0,4096)", flops = "blocks*clip(0,0,4096)",
//           tile_flops = "4096"} {...}
//
// A persistent kernel also gets `tiles = "..."`, the trip count of its loop over tiles. Without a formula,
// `no_estimate` gives the reason.
//
// On entry: any verified kernel.
// On exit: only attributes have changed.
#include "dialect/tile/transforms/Cost.h"
#include "dialect/tile/transforms/Passes.h"

namespace kpkg::tile {
#define GEN_PASS_DEF_TILEESTIMATECOST
#include "dialect/tile/transforms/Passes.h.inc"

namespace {
struct TileEstimateCost final : impl::TileEstimateCostBase<TileEstimateCost> {
  void runOnOperation() override {
    KernelOp kernel = getOperation();
    mlir::Builder builder(&getContext());
    if (std::optional<CostTerm> tiles = countTiles(kernel))
      kernel->setAttr("tiles", builder.getStringAttr(toString(*tiles)));
    std::optional<Cost> cost = estimateCost(kernel);
    if (!cost) {
      ++unknown;
      kernel->setAttr("no_estimate", builder.getStringAttr(whyNoEstimate(kernel)));
      return;
    }
    kernel->setAttr("flops", builder.getStringAttr(toString(cost->flops)));
    kernel->setAttr("bytes", builder.getStringAttr(toString(cost->bytes)));
    if (auto flops = estimateTileFlops(kernel))
      kernel->setAttr("tile_flops", builder.getStringAttr(toString(*flops)));
  }
};
} // namespace
} // namespace kpkg::tile
