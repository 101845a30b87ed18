// Stores results of products through shared memory by tensor maps, in whole lines, while the next tile is computed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.store %d, %y[%m, %n] : tensor<128x256xbf16, #acc>, ...
// After:  %staging = kgpu.alloc : !kgpu.smem<2x2x64x64xbf16, ...>        at the beginning of the kernel
//         kgpu.tensor_store %d, %argument[%i, %m, %n] map 0 through %staging
//
// On entry: a kernel whose launch has `consumers` and layouts.
// On exit: stores of 16-bit tiles are kgpu.tensor_store if the tile has the layout of an accumulator or of its
// transpose. So are additions of f32 tiles to memory. The view must suit a tensor map. Other stores stay as they are.
//
// If a loop within the loop over tiles stores a tile in each iteration, all 16-bit stores take the width of its
// panels. Then they share one buffer, since loops that store need shared memory for the operands that they read.
#include "dialect/kgpu/async/TensorStores.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/async/TensorViews.h"
#include "dialect/kgpu/async/WgmmaLayout.h"

#include <map>

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUTENSORSTORES
#include "dialect/kgpu/Passes.h.inc"

namespace {
constexpr int64_t kRows = 64;
/// Size of a warpgroup's buffers: one half is filled while the other is read.
constexpr int64_t kBufferBytes = 2 * kRows * 128;
/// A column of four 8x8 matrices, which one instruction stores.
constexpr int64_t kFewestPanelBytes = 32;
constexpr int64_t kMostPanelBytes = 128;

/// Returns the width of the widest panels that divide rows of `rowBytes`.
int64_t panelBytesFor(int64_t rowBytes, int64_t most) { return std::min<int64_t>(rowBytes & -rowBytes, most); }

/// The panels through which a tile is stored.
struct StoreShape {
  int64_t panelBytes, width; ///< of a row of a panel, in bytes and elements
};

/// Returns the panels of a 16-bit tile whose transpose is an accumulator: 64 of its columns each.
std::optional<StoreShape> turnedShape(RankedTensorType type, int64_t consumers) {
  int64_t bytes = elementBytes(type.getElementType());
  if (bytes != 2 || type.getDimSize(0) % kRows != 0 || type.getDimSize(1) % (kRows * consumers) != 0)
    return std::nullopt;
  return StoreShape{kMostPanelBytes, kMostPanelBytes / bytes};
}

/// Returns the panels of a 16-bit tile that is stored, of up to `mostPanelBytes`, or of an f32 tile that is added.
std::optional<StoreShape> storeShape(RankedTensorType type, int64_t consumers, bool adds,
                                     int64_t mostPanelBytes = kMostPanelBytes) {
  int64_t bytes = elementBytes(type.getElementType());
  if (adds) {
    bool hasRows = type.getDimSize(0) % (kRows * consumers) == 0 || sharesPanels(type.getShape(), consumers);
    if (!type.getElementType().isF32() || !hasRows || type.getDimSize(1) * bytes % kMostPanelBytes != 0)
      return std::nullopt;
    return StoreShape{kMostPanelBytes, kMostPanelBytes / bytes};
  }
  int64_t panelBytes = panelBytesFor(bytes * type.getDimSize(1), mostPanelBytes);
  if (bytes != 2 || type.getDimSize(0) % (kRows * consumers) != 0 || panelBytes < kFewestPanelBytes)
    return std::nullopt;
  return StoreShape{panelBytes, panelBytes / bytes};
}

ResultOrWhy<TensorView> targetOf(Value view, ValueRange offsets, RankedTensorType type) {
  ResultOrWhy<TensorView> target = tensorView(view, offsets, type.getShape());
  if (target && target->unitOfTile != 1)
    return Refusal{"the rows of the tile are not contiguous in the tensor"};
  if (target && target->slice)
    return Refusal{"the view is a slice, which copies to memory cannot bound"};
  return target;
}

constexpr Optimisation kStores{"kgpu-tensor-stores", "stores through shared memory"};

class Rewrite {
public:
  explicit Rewrite(tile::KernelOp kernel) : kernel(kernel), consumers(getLaunch(kernel).consumers) {}

  void run() {
    SmallVector<tile::StoreOp> stores;
    SmallVector<tile::AddStoreOp> sums;
    kernel.walk([&](tile::StoreOp store) { stores.push_back(store); });
    kernel.walk([&](tile::AddStoreOp store) { sums.push_back(store); });
    for (tile::StoreOp store : stores)
      if (std::optional<StoreShape> shape = inLoop(store) ? shapeInRows(store) : std::nullopt)
        mostPanelBytes = std::min(mostPanelBytes, shape->panelBytes);
    for (tile::StoreOp store : stores)
      rewrite(store);
    for (tile::AddStoreOp store : sums)
      rewrite(store);
  }

private:
  /// Returns whether the store stands in a loop within the loop over tiles, and runs in each iteration.
  static bool inLoop(tile::StoreOp store) {
    return isa<scf::ForOp>(store->getParentOp()) && isa<scf::ForOp>(store->getParentOp()->getParentOp());
  }

  /// Returns the panels of a tile with the layout of an accumulator.
  std::optional<StoreShape> shapeInRows(tile::StoreOp store) {
    auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
    bool isAccumulator = type && type.getRank() == 2 && layoutOf(type) == wgmmaAccumulator(type.getShape(), consumers);
    return isAccumulator ? storeShape(type, consumers, /*adds=*/false) : std::nullopt;
  }

  template <typename Store> void rewrite(Store store) {
    RemarkPlace place = store;
    if (WhyNot why = rewriteOrWhyNot(store))
      remarkRefused(place, kStores, *why);
    else
      remarkApplied(place, kStores, "the TMA writes whole lines while the next tile is computed");
  }

  /// Rewrites a tile.store or tile.add_store, or returns why it does not change.
  template <typename Store> WhyNot rewriteOrWhyNot(Store store) {
    constexpr bool adds = std::is_same_v<Store, tile::AddStoreOp>;
    auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
    if (!type || type.getRank() != 2)
      return "it stores no tile of two dimensions";
    std::optional<StoreShape> shape = adds ? std::nullopt : turnedShape(type, consumers);
    bool isTurned = shape && layoutOf(type) == wgmmaTurned(type.getShape(), consumers);
    if (!isTurned)
      shape = storeShape(type, consumers, adds, mostPanelBytes);
    if (!shape)
      return whyNoPanels(adds);
    if (!isTurned && layoutOf(type) != wgmmaAccumulator(type.getShape(), consumers))
      return "the tile is not distributed over threads as the result of a product is";
    ResultOrWhy<TensorView> target = targetOf(store.getView(), store.getOffsets(), type);
    if (!target)
      return target.why();
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    SmallVector<int64_t> box(target->box.size(), 1);
    for (auto [dim, extent] : llvm::enumerate(target->box))
      if (extent != 1)
        box[dim] = dim == target->unit ? shape->width : kRows;
    unsigned map = addTensorMap(kernel, TensorMapAttr::get(kernel.getContext(), target->argument.getArgNumber(), box,
                                                           shape->panelBytes, WindowAttr()));
    Value staging = stagingFor(builder, store.getLoc(), type.getElementType(), *shape);
    builder.setInsertionPoint(store);
    TensorStoreOp::create(builder, store.getLoc(), store.getValue(), target->argument, target->offsets, map, staging,
                          adds);
    store.erase();
    return std::nullopt;
  }

  static std::string whyNoPanels(bool adds) {
    return adds ? "it must add elements of float32, in rows of 128 bytes or multiples, and 64 rows for each warpgroup"
                : "it must store elements of 16 bits, in rows of 32 bytes or multiples, and 64 rows for each warpgroup";
  }

  /// Returns the buffer for panels of this width. Tiles of all element types share it: a later store waits for earlier
  /// copies.
  Value stagingFor(OpBuilder &builder, Location loc, Type element, const StoreShape &shape) {
    Value &staging = stagings[shape.panelBytes];
    if (!staging) {
      int64_t count = kBufferBytes / (kRows * shape.panelBytes);
      auto panel = cantFail(
          layout::SharedLayout::tma({kRows, shape.width}, elementBytes(element), layout::Swizzle(shape.panelBytes)));
      auto buffers = SharedType::get({consumers, count, kRows, shape.width}, element,
                                     layout::withSlots(layout::withSlots(panel, count), consumers));
      staging = AllocOp::create(builder, loc, buffers, IntegerAttr());
    }
    return staging;
  }

  tile::KernelOp kernel;
  int64_t consumers;
  std::map<int64_t, Value> stagings; ///< keyed by the bytes of a panel's rows
  int64_t mostPanelBytes = kMostPanelBytes;
};

struct TensorStores final : impl::KgpuTensorStoresBase<TensorStores> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).consumers != 0)
      Rewrite(getOperation()).run();
  }
};
} // namespace

bool isAddedByMap(tile::AddStoreOp store, unsigned consumers) {
  auto type = cast<RankedTensorType>(store.getValue().getType());
  return consumers != 0 && store.getValue().getDefiningOp<tile::DotOp>() && type.getRank() == 2 &&
         storeShape(type, consumers, /*adds=*/true) && targetOf(store.getView(), store.getOffsets(), type);
}
} // namespace kpkg::kgpu
