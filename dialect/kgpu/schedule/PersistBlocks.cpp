// As many clusters as the machine holds go over all kernel blocks, so that one block's loads can be under way while another one is computed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.kernel @rows(...) attributes {kgpu.cluster = 8 : i32, kgpu.persistent} { ... tile.block_id x ... }
// After:  tile.kernel @rows(...) ... {
//           scf.for %i = tile.block_id x to tile.grid_dim x step kgpu.cta_count / 8 { ... %i ... }
//         }
//
// On entry: any kernel; it is left alone without the attribute `kgpu.persistent`. On exit: the kernel's ops are in a loop over the kernel blocks along x;
// constants stand before it. Whoever launches it takes no more CTAs than the machine holds at once.
#include "dialect/kgpu/Passes.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPERSISTBLOCKS
#include "dialect/kgpu/Passes.h.inc"

namespace {
void persist(tile::KernelOp kernel) {
  Location loc = kernel.getLoc();
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator())
    if (!op.hasTrait<OpTrait::ConstantLike>())
      ops.push_back(&op);
  OpBuilder builder(body.getTerminator());
  Value first = tile::BlockIdOp::create(builder, loc, tile::GridAxis::x), count = tile::GridDimOp::create(builder, loc, tile::GridAxis::x);
  Value step = CtaCountOp::create(builder, loc);
  if (unsigned cluster = getLaunch(kernel).cluster; cluster > 1)
    step = arith::DivUIOp::create(builder, loc, step, arith::ConstantIndexOp::create(builder, loc, cluster));
  auto loop = scf::ForOp::create(builder, loc, first, count, step);
  for (Operation *op : ops) {
    op->moveBefore(loop.getBody()->getTerminator());
    op->walk([&](tile::BlockIdOp id) {
      if (id.getAxis() == tile::GridAxis::x)
        id.replaceAllUsesWith(loop.getInductionVar());
    });
  }
}

struct PersistBlocks final : impl::KgpuPersistBlocksBase<PersistBlocks> {
  void runOnOperation() override {
    if (getLaunch(getOperation()).persistent)
      persist(getOperation());
  }
};
} // namespace
} // namespace kpkg::kgpu
