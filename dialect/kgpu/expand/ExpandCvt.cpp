// Expands layout conversions between warps, and other ops that move elements, into an exchange through shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %w = kgpu.cvt_layout %v : tensor<8x32xf32, #rows> -> tensor<8x32xf32, #columns>
// After:  %m = kgpu.alloc : !kgpu.smem<8x32xf32, "4B 0:144,288,576 1:4,8,16,32,64 rep 1x1">
//         kgpu.local_store %v, %m
//         %w = kgpu.local_load %m : ... -> tensor<8x32xf32, #columns>
//
// Before: %w = tile.reshape %v : tensor<4x12xf32, #small> -> tensor<48xf32, #long>
// After:  %m = kgpu.alloc : !kgpu.smem<4x12xf32>
//         kgpu.local_store %v, %m
//         %n = kgpu.reshape_buffer %m : !kgpu.smem<4x12xf32> -> !kgpu.smem<48xf32>
//         %w = kgpu.local_load %n : ... -> tensor<48xf32, #long>
//
// Before: %w = tile.extract %v [0, 1] step [1, 3] : tensor<4x12xf32, #v> -> tensor<4x3xf32, #w>
// After:  %m = kgpu.alloc : !kgpu.smem<4x12xf32>
//         kgpu.local_store %v, %m
//         %n = kgpu.slice_buffer %m [0, 1] step [1, 3] : ... -> !kgpu.smem<4x3xf32, "4B rep 4x3 stride 48,12">
//         %w = kgpu.local_load %n : ... -> tensor<4x3xf32, #w>
//
// A tile.join stores each part to a slice of one buffer. The result of a tile.atomic is known to the first thread
// that holds an element, and the other threads load it from a buffer. A conversion stays if shuffles can do it
// at lower cost than shared memory. It also stays if shuffles can do it in a kernel with roles, and its users are only
// scatters, or, with `producers`, stores.
//
// On entry: every tile has a layout.
// On exit: every remaining kgpu.cvt_layout renames registers or shuffles. Every tile.reshape, tile.extract and
// tile.join leaves elements in their threads. The buffer's layout avoids bank conflicts on both sides where possible.
// Barriers are inserted later.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/PartLayouts.h"
#include "dialect/kgpu/expand/SharedTiles.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/layout/Algebra.h"
#include "dialect/layout/Conversion.h"

using namespace mlir;

namespace kpkg::kgpu {

#define GEN_PASS_DEF_KGPUEXPANDCVT
#include "dialect/kgpu/Passes.h.inc"

namespace {

using layout::Layout;

LogicalResult expand(CvtLayoutOp op, bool isPacked, const Launch &launch) {
  const Layout &from = layoutOf(op.getValue()), &to = layoutOf(op.getResult());
  auto type = cast<RankedTensorType>(op.getResult().getType());
  unsigned bytes = elementBytes(type.getElementType());
  // The blocks of a packed CTA share neither memory nor barriers.
  if (isPacked) {
    if (!layout::planRename(from, to) && !layout::planShuffles(from, to, bytes))
      return op.emitOpError("of a packed kernel moves elements between its blocks");
    return success();
  }
  // In kernels with roles, rings leave no shared memory for the result of a product that is scattered, or stored
  // beside a producer warpgroup. Their warpgroups do not run in step either.
  bool isScattered = llvm::all_of(op->getUsers(), [&](Operation *user) {
    return isa<tile::ScatterOp>(user) || (launch.producers != 0 && isa<tile::StoreOp>(user));
  });
  if (launch.consumers != 0 && isScattered && layout::planShuffles(from, to, bytes))
    return success();
  llvm::Expected<layout::Conversion> conversion = layout::planConversion(from, to, bytes);
  if (!conversion)
    return op.emitOpError() << llvm::toString(conversion.takeError());
  if (!std::holds_alternative<layout::SharedPlan>(conversion->plan))
    return success();
  IRRewriter rewriter(op);
  Value buffer = storedTile(rewriter, op.getLoc(), op.getValue(), /*acrossCtas=*/false,
                            layout::SharedLayout::conflictFree(from, to, bytes));
  rewriter.replaceOpWithNewOp<LocalLoadOp>(op, type, buffer);
  return success();
}

/// Inserts a conversion before or after a reshape, such that the reshape leaves all elements in their registers. The
/// conversion is expanded later.
LogicalResult expand(tile::ReshapeOp op, bool isPacked) {
  auto from = cast<RankedTensorType>(op.getValue().getType()), to = cast<RankedTensorType>(op.getResult().getType());
  IRRewriter builder(op);
  Location loc = op.getLoc();
  llvm::Expected<Layout> forward = layout::reshape(layoutOf(from), from.getShape(), to.getShape());
  if (forward) {
    if (*forward == layoutOf(to))
      return success();
    Value reshaped = tile::ReshapeOp::create(builder, loc, withLayout(to, *forward), op.getValue());
    builder.replaceOpWithNewOp<CvtLayoutOp>(op, to, reshaped);
    return success();
  }
  llvm::Expected<Layout> backward = layout::reshape(layoutOf(to), to.getShape(), from.getShape());
  if (backward) {
    llvm::consumeError(forward.takeError());
    if (*backward != layoutOf(from))
      op.getValueMutable().assign(CvtLayoutOp::create(builder, loc, withLayout(from, *backward), op.getValue()));
    return success();
  }
  std::string reason = llvm::toString(forward.takeError());
  llvm::consumeError(backward.takeError());
  if (isPacked || layoutOf(from).blocks() > 1)
    return op.emitOpError() << "of a packed or clustered kernel needs other layouts: " << reason;
  Value buffer = storedTile(builder, loc, op.getValue());
  auto reshaped = ReshapeBufferOp::create(builder, loc, SharedType::get(to.getShape(), to.getElementType()), buffer);
  builder.replaceOpWithNewOp<LocalLoadOp>(op, to, reshaped);
  return success();
}

/// Refuses to move elements where threads of a tile share no memory.
LogicalResult checkShared(Operation *op, Value result, bool isPacked) {
  if (isPacked || layoutOf(result).blocks() > 1)
    return op->emitOpError("of a packed or clustered kernel moves elements between its CTAs or blocks");
  return success();
}

/// Stores the tile, and loads the part from there. `stored` has the buffers of tiles with several parts.
LogicalResult expand(tile::ExtractOp op, bool isPacked, DenseMap<std::pair<Value, Block *>, Value> &stored) {
  if (renamesRegisters(op))
    return success();
  if (failed(checkShared(op, op.getValue(), isPacked)))
    return failure();
  IRRewriter builder(op);
  Value &buffer = stored[{op.getValue(), op->getBlock()}];
  if (!buffer)
    buffer = storedTile(builder, op.getLoc(), op.getValue());
  ArrayRef<int64_t> sizes = cast<RankedTensorType>(op.getType()).getShape();
  Value part = SliceBufferOp::create(builder, op.getLoc(), buffer, op.getOffsets(), sizes, op.getSteps());
  builder.replaceOpWithNewOp<LocalLoadOp>(op, op.getType(), part);
  return success();
}

/// Stores each part at its place, and loads the tile.
LogicalResult expand(tile::JoinOp op, bool isPacked) {
  if (renamesRegisters(op))
    return success();
  if (failed(checkShared(op, op.getResult(), isPacked)))
    return failure();
  IRRewriter builder(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType());
  Value buffer = AllocOp::create(builder, loc, SharedType::get(type.getShape(), type.getElementType()), IntegerAttr());
  SmallVector<int64_t> begin(type.getRank(), 0), ones(type.getRank(), 1);
  for (Value part : op.getParts()) {
    ArrayRef<int64_t> sizes = cast<RankedTensorType>(part.getType()).getShape();
    LocalStoreOp::create(builder, loc, part, SliceBufferOp::create(builder, loc, buffer, begin, sizes, ones));
    begin[op.getAxis()] += sizes[op.getAxis()];
  }
  builder.replaceOpWithNewOp<LocalLoadOp>(op, type, buffer);
  return success();
}

/// Hands the old values, which only first replicas have, to all replicas.
LogicalResult expand(tile::AtomicOp op, bool isPacked) {
  Value old = op.getOld();
  if (!old || old.use_empty() || !layoutOf(old).isReplicated())
    return success();
  if (failed(checkShared(op, old, isPacked)))
    return failure();
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value buffer = storedTile(builder, op.getLoc(), old);
  Value loaded = LocalLoadOp::create(builder, op.getLoc(), old.getType(), buffer);
  old.replaceUsesWithIf(loaded, [&](OpOperand &use) { return !isa<LocalStoreOp>(use.getOwner()); });
  return success();
}

struct ExpandCvt final : impl::KgpuExpandCvtBase<ExpandCvt> {
  void runOnOperation() override {
    Launch launch = getLaunch(getOperation());
    bool isPacked = launch.blocks > 1;
    DenseMap<std::pair<Value, Block *>, Value> stored;
    Operation *root = getOperation();
    if (failed(forEachOp<tile::AtomicOp>(root, [&](auto op) { return expand(op, isPacked); })) ||
        failed(forEachOp<tile::ReshapeOp>(root, [&](auto op) { return expand(op, isPacked); })) ||
        failed(forEachOp<tile::ExtractOp>(root, [&](auto op) { return expand(op, isPacked, stored); })) ||
        failed(forEachOp<tile::JoinOp>(root, [&](auto op) { return expand(op, isPacked); })) ||
        failed(forEachOp<CvtLayoutOp>(root, [&](auto op) { return expand(op, isPacked, launch); })))
      signalPassFailure();
  }
};

} // namespace
} // namespace kpkg::kgpu
