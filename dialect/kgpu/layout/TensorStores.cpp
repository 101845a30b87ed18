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
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/StorePanels.h"
#include "dialect/kgpu/analysis/WgmmaLayout.h"
#include "dialect/kgpu/ir/Walks.h"

#include <map>

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUTENSORSTORES
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// Size of a warpgroup's buffers: one half is filled while the other is read.
constexpr int64_t kBufferBytes = 2 * kPanelRows * 128;

constexpr Optimisation kStores{"kgpu-tensor-stores", "stores through shared memory"};

class Rewrite {
public:
  explicit Rewrite(tile::KernelOp kernel) : kernel(kernel), consumers(getLaunch(kernel).consumers) {}

  void run() {
    SmallVector<tile::StoreOp> stores = opsIn<tile::StoreOp>(kernel);
    for (tile::StoreOp store : stores)
      if (std::optional<StoreShape> shape = inLoop(store) ? shapeInRows(store) : std::nullopt)
        mostPanelBytes = std::min(mostPanelBytes, shape->panelBytes);
    for (tile::StoreOp store : stores)
      rewrite(store);
    for (auto store : opsIn<tile::AddStoreOp>(kernel))
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
    remarkOn(place, kStores, rewriteOrWhyNot(store), "the TMA writes whole lines while the next tile is computed");
  }

  /// Rewrites a tile.store or tile.add_store, or returns why it does not change.
  template <typename Store> WhyNot rewriteOrWhyNot(Store store) {
    constexpr bool adds = std::is_same_v<Store, tile::AddStoreOp>;
    auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
    if (!type || type.getRank() != 2)
      return "it stores no tile of two dimensions";
    std::optional<StoreShape> shape = adds ? std::nullopt : transposedShape(type, consumers);
    bool isTransposed = shape && layoutOf(type) == wgmmaTransposed(type.getShape(), consumers);
    if (!isTransposed)
      shape = storeShape(type, consumers, adds, mostPanelBytes);
    if (!shape)
      return whyNoPanels(adds);
    if (!isTransposed && layoutOf(type) != wgmmaAccumulator(type.getShape(), consumers))
      return "the tile is not distributed over threads as the result of a product is";
    ResultOrWhy<TensorView> target = storedPlace(store.getView(), store.getOffsets(), type);
    if (!target)
      return target.why();
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    SmallVector<int64_t> box(target->box.size(), 1);
    for (auto [dim, extent] : llvm::enumerate(target->box))
      if (extent != 1)
        box[dim] = dim == target->unit ? shape->width : kPanelRows;
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
      int64_t count = kBufferBytes / (kPanelRows * shape.panelBytes);
      auto panel = cantFail(layout::SharedLayout::tma({kPanelRows, shape.width}, elementBytes(element),
                                                      layout::Swizzle(shape.panelBytes)));
      auto buffers = SharedType::get({consumers, count, kPanelRows, shape.width}, element,
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
  void runOnOperation() override { Rewrite(getOperation()).run(); }
};
} // namespace
} // namespace kpkg::kgpu
