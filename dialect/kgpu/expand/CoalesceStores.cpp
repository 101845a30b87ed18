// Converts results of matrix products to layouts in which threads store whole vectors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.store %v, %d[%r, %c]
//             : tensor<128x128xbf16, #acc>, !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8>
// After:  %w = kgpu.cvt_layout %v : tensor<128x128xbf16, #acc> -> tensor<128x128xbf16, #rows>
//         tile.store %w, %d[%r, %c] : tensor<128x128xbf16, #rows>, ...
//
// On entry: every tile has a layout. A kernel with roles has `producers`, see below.
// On exit: a store whose view allows vectors at least twice as long as the layout has is preceded by a conversion. The
// new layout is the result of shuffles within groups of lanes, or the coalesced layout. The pass takes the cheaper of
// both conversions.
//
// Stores to scratch memory stay: it is in shared memory, through which the elements would be exchanged.
//
// Only layouts that a matrix product has imposed are changed, and layouts in which transposed bytes would be stored
// one by one. All others were chosen for memory already.
//
// In kernels with a producer warpgroup, rings leave no memory for results, neither for this nor for tensor maps.
// There, threads exchange 16-bit results of products so that four lanes write a sector of 32 bytes. Stores of half a
// sector took 2.7 times as long, and all roles wait for them. Measured on an H200 with latent attention and 64 steps
// per tile: 3 % of all time.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/AccessWidths.h"
#include "dialect/kgpu/analysis/DotLayout.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Conversion.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUCOALESCESTORES
#include "dialect/kgpu/Passes.h.inc"

namespace {
using layout::Layout;

/// Returns how many elements one access along the unit dimension may have.
int64_t longestVector(tile::StoreOp store) {
  tile::ViewType view = store.getView().getType();
  return view.getUnit() < 0 ? 1 : std::max<int64_t>(1, mostTogether(view, store.getOffsets()));
}

unsigned costOf(const Layout &from, const Layout &to, unsigned bytes) {
  auto conversion = llvm::expectedToOptional(layout::planConversion(from, to, bytes));
  return conversion ? conversion->cost : ~0u;
}

constexpr Optimisation kVectors{"kgpu-coalesce-stores", "stores of whole vectors"};

void coalesce(tile::StoreOp store, const Launch &launch) {
  auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
  if (!type || !isa<BlockArgument>(tile::argumentOf(store.getView())))
    return;
  int64_t longest = longestVector(store);
  if (longest == 1 && isMmaSyncAccumulator(layoutOf(type)))
    return remarkRefused(store, kVectors,
                         "a thread stores one element at a time: the tensor's address and strides, or the tile's "
                         "begin, are not known to suit vectors");
  if (longest == 1)
    return;
  const Layout &from = layoutOf(type);
  int64_t unit = store.getView().getType().getUnit();
  bool isTransposed =
      type.getRank() == 2 && elementBytes(type.getElementType()) == 1 && from.vectorLength(unit, longest) == 1;
  if (!isMmaSyncAccumulator(from) && !isTransposed)
    return;
  if (2 * int64_t(from.vectorLength(unit, longest)) > longest)
    return; // threads hold long vectors already
  unsigned bytes = elementBytes(type.getElementType());
  SmallVector<unsigned> order = {static_cast<unsigned>(unit), static_cast<unsigned>(1 - unit)};
  Layout best = layout::coalesced(type.getShape(), bytes, {launch.lanes(), launch.spreadWarps(), launch.ctas()},
                                  longest * bytes, order);
  unsigned least = costOf(from, best, bytes);
  if (std::optional<Layout> shuffled = layout::withNeighbours(from, unit, longest)) {
    unsigned cost = costOf(from, *shuffled, bytes);
    if (cost <= least) {
      best = *shuffled;
      least = cost;
    }
  }
  if (least == ~0u)
    return remarkRefused(store, kVectors, "threads cannot exchange the elements of the tile as that needs");
  remarkApplied(store, kVectors,
                "threads exchange elements first, and then store up to " + llvm::Twine(longest) + " at once");
  OpBuilder builder(store);
  store.getValueMutable().assign(
      CvtLayoutOp::create(builder, store.getLoc(), withLayout(type, best), store.getValue()));
}

/// Gives each thread of a kernel with roles four adjacent elements of a row instead of two.
void fillSectors(tile::StoreOp store, const Launch &launch) {
  constexpr int64_t neighbours = 4;
  auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
  if (!type || type.getRank() != 2 || elementBytes(type.getElementType()) != 2 || longestVector(store) < neighbours ||
      store.getView().getType().getUnit() != 1)
    return;
  const Layout &from = layoutOf(type);
  std::optional<Layout> to = from == wgmmaAccumulator(type.getShape(), launch.consumers)
                                 ? layout::withNeighbours(from, 1, neighbours)
                                 : std::nullopt;
  if (!to || !layout::planShuffles(from, *to, elementBytes(type.getElementType())))
    return;
  remarkApplied(store, kVectors, "four threads exchange elements and store a sector of 32 bytes");
  OpBuilder builder(store);
  store.getValueMutable().assign(CvtLayoutOp::create(builder, store.getLoc(), withLayout(type, *to), store.getValue()));
}

struct CoalesceStores final : impl::KgpuCoalesceStoresBase<CoalesceStores> {
  void runOnOperation() override {
    Launch launch = getLaunch(getOperation());
    getOperation().walk(
        [&](tile::StoreOp store) { launch.producers != 0 ? fillSectors(store, launch) : coalesce(store, launch); });
  }
};
} // namespace
} // namespace kpkg::kgpu
