// Places the scratch memory of blocks into shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %m = tile.scratch [64, 33] : !tile.view<2xf32, mut, unit = 1, align = 16, index = 32>
// After:  %b = kgpu.alloc : !kgpu.smem<64x33xf32>
//         %m = kgpu.view_buffer %b : !kgpu.smem<64x33xf32> -> !tile.view<2xf32, mut, unit = 1, align = 16, index = 32>
//
// On entry: a configured kernel. All threads of a block run on one CTA, and a CTA runs one block at a time.
// On exit: no tile.scratch is left. Accesses stay ops of the tile dialect. kgpu-insert-barriers orders them.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/tile/ir/ThreadOps.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPLACESCRATCH
#include "dialect/kgpu/Passes.h.inc"

namespace {
struct PlaceScratch final : impl::KgpuPlaceScratchBase<PlaceScratch> {
  void runOnOperation() override {
    Launch launch = getLaunch(getOperation());
    // At thread level each block of a cluster has memory of its own.
    bool isAlone =
        tile::isOfThreads(getOperation()) || (launch.blocks == 1 && launch.cluster == 1 && launch.consumers == 0);
    WalkResult result = getOperation().walk([&](tile::ScratchOp scratch) {
      if (!isAlone) {
        scratch.emitOpError("is in a kernel with roles or clusters, or with several blocks in a CTA");
        return WalkResult::interrupt();
      }
      OpBuilder builder(scratch);
      auto type = SharedType::get(scratch.getShape(), scratch.getType().getElementType());
      Value buffer = AllocOp::create(builder, scratch.getLoc(), type, IntegerAttr());
      scratch.replaceAllUsesWith(
          ViewBufferOp::create(builder, scratch.getLoc(), scratch.getType(), buffer).getResult());
      scratch.erase();
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
} // namespace kpkg::kgpu
