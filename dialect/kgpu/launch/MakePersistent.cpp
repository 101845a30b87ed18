// Makes a kernel persistent: as many clusters as the machine holds loop over all kernel blocks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.kernel @rows(...) attributes {kgpu.launch = #kgpu.launch<cluster = 8, persistent>} { ... tile.block_id x
// ... } After:  tile.kernel @rows(...) ... {
//           scf.for %i = tile.block_id x to tile.grid_dim x step kgpu.cta_count / 8 { ... %i ... }
//         }
//
// On entry: any kernel with a launch.
// On exit: the kernel's ops are in a loop over the kernel blocks along x. Constants stand before the loop, and with
// `early_loads` so do loads that are the same for all kernel blocks. The launch must not have more CTAs than the
// machine holds at once.
//
// Loads of the next block can be in flight while a block is computed.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/ir/Repeatable.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUMAKEPERSISTENT
#include "dialect/kgpu/Passes.h.inc"

namespace {
bool isReadOnlyLoad(Operation *op) {
  auto load = dyn_cast<tile::LoadOp>(op);
  return load && !cast<tile::ViewType>(load.getView().getType()).getIsMut();
}

/// Returns loads that are the same for all kernel blocks, with their address computations.
llvm::SetVector<Operation *> loadsOfAll(Block &body) {
  llvm::SetVector<Operation *> result;
  for (Operation &op : body) {
    bool isSame = llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *source = operand.getDefiningOp();
      return !source || source->hasTrait<OpTrait::ConstantLike>() || result.contains(source);
    });
    auto id = dyn_cast<tile::BlockIdOp>(op);
    bool isAddress = isRepeatable(&op) && op.getNumRegions() == 0 && !(id && id.getAxis() == tile::GridAxis::x) &&
                     llvm::none_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>);
    if (isSame && (isAddress || isReadOnlyLoad(&op)))
      result.insert(&op);
  }
  return result;
}

void makePersistent(tile::KernelOp kernel) {
  Location loc = kernel.getLoc();
  Block &body = kernel.getBody().front();
  SmallVector<Operation *> ops;
  llvm::SetVector<Operation *> before;
  if (getLaunch(kernel).earlyLoads)
    before = loadsOfAll(body);
  for (Operation &op : body.without_terminator())
    if (!op.hasTrait<OpTrait::ConstantLike>() && !before.contains(&op))
      ops.push_back(&op);
  OpBuilder builder(body.getTerminator());
  Value first = tile::BlockIdOp::create(builder, loc, tile::GridAxis::x),
        count = tile::GridDimOp::create(builder, loc, tile::GridAxis::x);
  Value step = CtaCountOp::create(builder, loc);
  if (unsigned cluster = getLaunch(kernel).cluster; cluster > 1)
    step = arith::DivUIOp::create(builder, loc, step, arith::ConstantIndexOp::create(builder, loc, cluster));
  auto loop = scf::ForOp::create(builder, loc, first, count, step);
  auto start = OpBuilder::atBlockBegin(loop.getBody());
  for (Operation *op : before)
    if (auto load = dyn_cast<tile::LoadOp>(op); load && isa<RankedTensorType>(load.getType())) {
      Value held = HoldOp::create(start, loc, load.getResult());
      load.getResult().replaceAllUsesExcept(held, held.getDefiningOp());
    }
  for (Operation *op : ops) {
    op->moveBefore(loop.getBody()->getTerminator());
    op->walk([&](tile::BlockIdOp id) {
      if (id.getAxis() == tile::GridAxis::x)
        id.replaceAllUsesWith(loop.getInductionVar());
    });
  }
}

struct MakePersistent final : impl::KgpuMakePersistentBase<MakePersistent> {
  void runOnOperation() override { makePersistent(getOperation()); }
};
} // namespace
} // namespace kpkg::kgpu
