// Writes results of products by tensor maps: whole lines of memory, while the next tile is computed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.store %d, %y[%m, %n] : tensor<128x256xbf16, #acc>, ...
// After:  %staging = kgpu.alloc : !kgpu.smem<2x2x64x64xbf16, ...>        at the beginning of the kernel
//         kgpu.tensor_store %d, %argument[%i, %m, %n] map 0 through %staging
//
// On entry: a kernel with `kgpu.consumers` and layouts. On exit: stores of tiles of 16-bit elements that have the layout of an accumulator,
// to a view that a tensor map can describe, are kgpu.tensor_store. Other stores stay as they are.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/async/TensorViews.h"
#include "dialect/kgpu/async/WgmmaLayout.h"

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

/// The widest panels that divide rows of so many bytes.
int64_t panelBytesFor(int64_t rowBytes) { return std::min<int64_t>(rowBytes & -rowBytes, 128); }

class Rewrite {
public:
  explicit Rewrite(tile::KernelOp kernel) : kernel(kernel), consumers(getLaunch(kernel).consumers) {}

  void run() {
    SmallVector<tile::StoreOp> stores;
    kernel.walk([&](tile::StoreOp store) { stores.push_back(store); });
    for (tile::StoreOp store : stores)
      rewrite(store);
  }

private:
  void rewrite(tile::StoreOp store) {
    auto type = dyn_cast<RankedTensorType>(store.getValue().getType());
    if (!type || type.getRank() != 2 || elementBytes(type.getElementType()) != 2 || type.getDimSize(0) % (kRows * consumers) != 0 ||
        layoutOf(type) != wgmmaAccumulator(type.getShape(), consumers))
      return;
    int64_t panelBytes = panelBytesFor(2 * type.getDimSize(1));
    if (panelBytes < kFewestPanelBytes)
      return;
    std::optional<TensorView> target = tensorView(store.getView(), store.getOffsets(), type.getShape());
    if (!target || target->unitOfTile != 1 || target->slice)
      return;
    int64_t width = panelBytes / 2;
    OpBuilder builder = OpBuilder::atBlockBegin(&kernel.getBody().front());
    if (!staging || cast<SharedType>(staging.getType()).getElementType() != type.getElementType() || cast<SharedType>(staging.getType()).getShape()[3] != width) {
      int64_t count = kBufferBytes / (kRows * panelBytes);
      auto panel = cantFail(layout::SharedLayout::tma({kRows, width}, 2, layout::Swizzle(panelBytes)));
      auto buffers = SharedType::get({consumers, count, kRows, width}, type.getElementType(),
                                     layout::withSlots(layout::withSlots(panel, count), consumers));
      staging = AllocOp::create(builder, store.getLoc(), buffers, IntegerAttr());
    }
    SmallVector<int64_t> box(target->box.size(), 1);
    for (auto [dim, extent] : llvm::enumerate(target->box))
      if (extent != 1)
        box[dim] = dim == target->unit ? width : kRows;
    unsigned map = addTensorMap(kernel, TensorMapAttr::get(kernel.getContext(), target->argument.getArgNumber(), box, panelBytes, WindowAttr()));
    builder.setInsertionPoint(store);
    TensorStoreOp::create(builder, store.getLoc(), store.getValue(), target->argument, target->offsets, map, staging);
    store.erase();
  }

  tile::KernelOp kernel;
  int64_t consumers;
  Value staging;
};

struct TensorStores final : impl::KgpuTensorStoresBase<TensorStores> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).consumers != 0)
      Rewrite(getOperation()).run();
  }
};
} // namespace
} // namespace kpkg::kgpu
