// Writes results of products by tensor maps: whole lines of memory, while the next tile is computed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.store %d, %y[%m, %n] : tensor<128x256xbf16, #acc>, ...
// After:  %staging = kgpu.alloc : !kgpu.smem<2x2x64x64xbf16, ...>        at the beginning of the kernel
//         kgpu.tensor_store %d, %argument[%i, %m, %n] map 0 through %staging
//
// On entry: a kernel with `kgpu.consumers` and layouts. On exit: stores of tiles of 16-bit elements that have the
// layout of an accumulator or of its transpose, to a view that a tensor map can describe, are kgpu.tensor_store; so are
// tiles of f32 that are added. Other stores stay as they are. Where each iteration of a tile's loop stores tiles, all
// 16-bit stores have panels as narrow as theirs, and with them one buffer: loops that store need the shared memory for
// what they read.
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
/// Of the buffers of a warpgroup: one half is filled while the other one is read.
constexpr int64_t kBufferBytes = 2 * kRows * 128;
/// A column of four 8x8 matrices, which one instruction stores.
constexpr int64_t kFewestPanelBytes = 32;
constexpr int64_t kMostPanelBytes = 128;

/// The widest panels that divide rows of so many bytes.
int64_t panelBytesFor(int64_t rowBytes, int64_t most) { return std::min<int64_t>(rowBytes & -rowBytes, most); }

/// How a tile goes through panels.
struct StoreShape {
  int64_t panelBytes, width; ///< of a row of a panel, in bytes and elements
};

/// Of a tile of 16-bit elements whose transpose is an accumulator: panels of 64 of its columns.
std::optional<StoreShape> turnedShape(RankedTensorType type, int64_t consumers) {
  int64_t bytes = elementBytes(type.getElementType());
  if (bytes != 2 || type.getDimSize(0) % kRows != 0 || type.getDimSize(1) % (kRows * consumers) != 0)
    return std::nullopt;
  return StoreShape{kMostPanelBytes, kMostPanelBytes / bytes};
}

/// Of a tile of 16-bit elements that replace others, in panels of up to so many bytes, or of f32 elements that are
/// added.
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

std::optional<TensorView> targetOf(Value view, ValueRange offsets, RankedTensorType type) {
  std::optional<TensorView> target = tensorView(view, offsets, type.getShape());
  return target && target->unitOfTile == 1 && !target->slice ? target : std::nullopt;
}

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
  /// Whether every iteration of a loop within that of the tiles stores it.
  static bool inLoop(tile::StoreOp store) {
    return isa<scf::ForOp>(store->getParentOp()) && isa<scf::ForOp>(store->getParentOp()->getParentOp());
  }

  /// Of a tile that lies like an accumulator.
  std::optional<StoreShape> shapeInRows(tile::StoreOp store) {
    auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
    bool isAccumulator = type && type.getRank() == 2 && layoutOf(type) == wgmmaAccumulator(type.getShape(), consumers);
    return isAccumulator ? storeShape(type, consumers, /*adds=*/false) : std::nullopt;
  }

  /// A tile.store or tile.add_store.
  template <typename Store> void rewrite(Store store) {
    constexpr bool adds = std::is_same_v<Store, tile::AddStoreOp>;
    auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
    if (!type || type.getRank() != 2)
      return;
    std::optional<StoreShape> shape = adds ? std::nullopt : turnedShape(type, consumers);
    bool isTurned = shape && layoutOf(type) == wgmmaTurned(type.getShape(), consumers);
    if (!isTurned)
      shape = storeShape(type, consumers, adds, mostPanelBytes);
    if (!shape || (!isTurned && layoutOf(type) != wgmmaAccumulator(type.getShape(), consumers)))
      return;
    std::optional<TensorView> target = targetOf(store.getView(), store.getOffsets(), type);
    if (!target)
      return;
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
  }

  /// Buffers of the same bytes serve elements of all types: what comes later waits until they have been read.
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
  std::map<int64_t, Value> stagings; ///< by the bytes of a panel's rows
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
