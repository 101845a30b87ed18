// Conversions that shuffles cannot do, or, but for scatters of kernels with roles and stores of those with
// `kgpu.producers`, do slower, go through shared memory; so do reshapes between layouts that do not fit.
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
// On entry: every tile has a layout. On exit: what kgpu.cvt_layout remains is done by renaming registers or by
// shuffles, and every tile.reshape leaves elements in their threads. The buffer lies so that neither side has bank
// conflicts where that is possible. Barriers come later.
#include "dialect/kgpu/Passes.h"
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
  // Rings leave no memory for the result of a product that is scattered, or stored beside a warpgroup that makes
  // operands, and its warpgroups go in no common step.
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
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto memory = layout::SharedLayout::conflictFree(from, to, bytes);
  auto buffer =
      AllocOp::create(builder, loc, SharedType::get(type.getShape(), type.getElementType(), memory), IntegerAttr());
  LocalStoreOp::create(builder, loc, op.getValue(), buffer);
  op.replaceAllUsesWith(LocalLoadOp::create(builder, loc, type, buffer).getResult());
  op.erase();
  return success();
}

/// Brings a reshape's operand into a layout, or its result out of one, in which all elements stay in their registers.
/// The conversion that this takes is expanded after it.
LogicalResult expand(tile::ReshapeOp op, bool isPacked) {
  auto from = cast<RankedTensorType>(op.getValue().getType()), to = cast<RankedTensorType>(op.getResult().getType());
  OpBuilder builder(op);
  Location loc = op.getLoc();
  llvm::Expected<Layout> forward = layout::reshape(layoutOf(from), from.getShape(), to.getShape());
  if (forward) {
    if (*forward == layoutOf(to))
      return success();
    Value reshaped = tile::ReshapeOp::create(builder, loc, withLayout(to, *forward), op.getValue());
    op.replaceAllUsesWith(CvtLayoutOp::create(builder, loc, to, reshaped).getResult());
    op.erase();
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
  auto buffer = AllocOp::create(builder, loc, SharedType::get(from.getShape(), from.getElementType()), IntegerAttr());
  LocalStoreOp::create(builder, loc, op.getValue(), buffer);
  auto reshaped = ReshapeBufferOp::create(builder, loc, SharedType::get(to.getShape(), to.getElementType()), buffer);
  op.replaceAllUsesWith(LocalLoadOp::create(builder, loc, to, reshaped).getResult());
  op.erase();
  return success();
}

struct ExpandCvt final : impl::KgpuExpandCvtBase<ExpandCvt> {
  void runOnOperation() override {
    Launch launch = getLaunch(getOperation());
    bool isPacked = launch.blocks > 1;
    SmallVector<tile::ReshapeOp> reshapes;
    getOperation().walk([&](tile::ReshapeOp op) { reshapes.push_back(op); });
    for (tile::ReshapeOp op : reshapes)
      if (failed(expand(op, isPacked)))
        return signalPassFailure();
    SmallVector<CvtLayoutOp> conversions;
    getOperation().walk([&](CvtLayoutOp op) { conversions.push_back(op); });
    for (CvtLayoutOp op : conversions)
      if (failed(expand(op, isPacked, launch)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace kpkg::kgpu
