// Expands tile.add_store to atomic updates of elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.add_store %v, %y[%r, %c] : tensor<4x8xf32>, !tile.view<2xf32, mut>
// After:  %i = (%r + iota) as tensor<4x8xindex>; %j = (%c + iota) as tensor<4x8xindex>
//         tile.atomic add %v, %y[%i, %j] : tensor<4x8xf32>, !tile.view<2xf32, mut>, tensor<4x8xindex>
//
// On entry: any verified kernel without layouts.
// On exit: no tile.add_store remains.
//
// For targets that add to memory only element by element.
#include "dialect/tile/transforms/ExpandAddStores.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kpkg::tile {
#define GEN_PASS_DEF_TILEEXPANDADDSTORES
#include "dialect/tile/transforms/Passes.h.inc"

using namespace mlir;

SmallVector<Value> coordinatesOf(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, ValueRange offsets) {
  Type index = builder.getIndexType();
  SmallVector<Value> indices;
  for (auto [dim, offset] : llvm::enumerate(offsets)) {
    SmallVector<int64_t> line(shape.size(), 1);
    line[dim] = shape[dim];
    Value positions =
        ReshapeOp::create(builder, loc, RankedTensorType::get(line, index), IotaOp::create(builder, loc, shape[dim]));
    Value begin = SplatOp::create(builder, loc, RankedTensorType::get(line, index), offset);
    Value along = arith::AddIOp::create(builder, loc, begin, positions);
    indices.push_back(line == SmallVector<int64_t>(shape)
                          ? along
                          : BroadcastOp::create(builder, loc, RankedTensorType::get(shape, index), along).getResult());
  }
  return indices;
}

void expandAddStore(AddStoreOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getValue().getType()).getShape();
  AtomicOp::create(builder, loc, AtomicKind::Add, op.getValue(), op.getView(),
                   coordinatesOf(builder, loc, shape, op.getOffsets()), Value());
  op.erase();
}

namespace {
struct TileExpandAddStores final : impl::TileExpandAddStoresBase<TileExpandAddStores> {
  void runOnOperation() override {
    getOperation()->walk([](AddStoreOp op) { expandAddStore(op); });
  }
};
} // namespace
} // namespace kpkg::tile
