// Conversions that shuffles cannot do, or do slower, go through shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %w = kgpu.cvt_layout %v : tensor<8x32xf32, #rows> -> tensor<8x32xf32, #columns>
// After:  %m = kgpu.alloc : !kgpu.smem<8x32xf32, "4B 0:144,288,576 1:4,8,16,32,64 rep 1x1">
//         kgpu.local_store %v, %m
//         %w = kgpu.local_load %m : ... -> tensor<8x32xf32, #columns>
//
// On entry: every tile has a layout. On exit: what kgpu.cvt_layout remains is done by renaming registers or by shuffles. The buffer lies so
// that neither side has bank conflicts where that is possible. Barriers come later.
#include "dialect/kgpu/Passes.h"
#include "dialect/layout/Conversion.h"

using namespace mlir;

namespace kpkg::kgpu {

#define GEN_PASS_DEF_KGPUEXPANDCVT
#include "dialect/kgpu/Passes.h.inc"

namespace {

using layout::Layout;

LogicalResult expand(CvtLayoutOp op, bool isPacked) {
  const Layout &from = layoutOf(op.getValue()), &to = layoutOf(op.getResult());
  auto type = cast<RankedTensorType>(op.getResult().getType());
  unsigned bytes = elementBytes(type.getElementType());
  // The blocks of a packed CTA share neither memory nor barriers.
  if (isPacked) {
    if (!layout::planRename(from, to) && !layout::planShuffles(from, to, bytes))
      return op.emitOpError("of a packed kernel moves elements between its blocks");
    return success();
  }
  llvm::Expected<layout::Conversion> conversion = layout::planConversion(from, to, bytes);
  if (!conversion)
    return op.emitOpError() << llvm::toString(conversion.takeError());
  if (!std::holds_alternative<layout::SharedPlan>(conversion->plan))
    return success();
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto memory = layout::SharedLayout::conflictFree(from, to, bytes);
  auto buffer = AllocOp::create(builder, loc, SharedType::get(type.getShape(), type.getElementType(), memory), IntegerAttr());
  LocalStoreOp::create(builder, loc, op.getValue(), buffer);
  op.replaceAllUsesWith(LocalLoadOp::create(builder, loc, type, buffer).getResult());
  op.erase();
  return success();
}

struct ExpandCvt final : impl::KgpuExpandCvtBase<ExpandCvt> {
  void runOnOperation() override {
    bool isPacked = getLaunch(getOperation()).blocks > 1;
    SmallVector<CvtLayoutOp> conversions;
    getOperation().walk([&](CvtLayoutOp op) { conversions.push_back(op); });
    for (CvtLayoutOp op : conversions)
      if (failed(expand(op, isPacked)))
        return signalPassFailure();
  }
};

} // namespace
} // namespace kpkg::kgpu
