// Loads of a loop are issued one iteration before they are used, and travel in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %i = %a to %b step %s {
//           %v = tile.load %x[%i, %c0] ...
//           use %v
//         }
// After:  %first = tile.load %x[%a, %c0] ...
//         scf.for %i = %a to %b step %s iter_args(%v = %first) {
//           %j = arith.addi %i, %s
//           %next = tile.load %x[%j, %c0] ...
//           use %v
//           scf.yield %next
//         }
//
// On entry: any kernel; it is left alone without the attribute `kgpu.prefetch`. On exit: loads of read-only views, whose
// addresses need nothing but the loop's counter and what is known outside, are one iteration ahead. The last one reads
// what nobody asked for: loads are always in bounds, so it costs a little traffic and nothing else. Loops with matrix
// products are left alone: their operands go through shared memory.
#include "dialect/kgpu/schedule/PrefetchLoads.h"
#include "dialect/kgpu/Passes.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUPREFETCHLOADS
#include "dialect/kgpu/Passes.h.inc"

namespace {
/// A load and the ops of the loop that make its address, in order.
struct Ahead {
  tile::LoadOp load;
  SmallVector<Operation *> address;
};

bool isOnlyCounter(scf::ForOp loop, Operation *op) {
  return llvm::all_of(op->getOperands(), [&](Value operand) {
    auto argument = dyn_cast<BlockArgument>(operand);
    return !argument || argument.getOwner() != loop.getBody() || argument == loop.getInductionVar();
  });
}

std::optional<Ahead> aheadOf(scf::ForOp loop, tile::LoadOp load) {
  if (!isa<RankedTensorType>(load.getResult().getType()) || cast<tile::ViewType>(load.getView().getType()).getIsMut())
    return std::nullopt;
  llvm::SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.filter = [&](Operation *op) { return op->getBlock() == loop.getBody(); };
  if (failed(getBackwardSlice(load.getOperation(), &slice, options)))
    return std::nullopt;
  for (Operation *op : slice)
    if (!isMemoryEffectFree(op) || !isOnlyCounter(loop, op) ||
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>))
      return std::nullopt;
  if (!isOnlyCounter(loop, load))
    return std::nullopt;
  return Ahead{load, SmallVector<Operation *>(slice.begin(), slice.end())};
}

/// The load as it is when the loop's counter is `counter`.
Value loadAt(OpBuilder &builder, scf::ForOp loop, const Ahead &ahead, Value counter) {
  IRMapping mapping;
  mapping.map(loop.getInductionVar(), counter);
  for (Operation *op : ahead.address)
    builder.clone(*op, mapping);
  return builder.clone(*ahead.load, mapping)->getResult(0);
}

bool prefetchIn(scf::ForOp loop) {
  if (loop.getBody()->walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted())
    return false;
  SmallVector<Ahead> aheads;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (std::optional<Ahead> ahead = aheadOf(loop, load))
      aheads.push_back(std::move(*ahead));
  if (aheads.empty())
    return false;
  OpBuilder before(loop);
  SmallVector<Value> firsts, nexts;
  for (const Ahead &ahead : aheads)
    firsts.push_back(loadAt(before, loop, ahead, loop.getLowerBound()));
  auto builder = OpBuilder::atBlockBegin(loop.getBody());
  Value following = arith::AddIOp::create(builder, loop.getLoc(), loop.getInductionVar(), loop.getStep());
  for (const Ahead &ahead : aheads)
    nexts.push_back(loadAt(builder, loop, ahead, following));
  IRRewriter rewriter(loop.getContext());
  rewriter.setInsertionPoint(loop);
  unsigned carried = loop.getNumRegionIterArgs();
  auto yields = [&](OpBuilder &, Location, ArrayRef<BlockArgument>) { return nexts; };
  FailureOr<LoopLikeOpInterface> longer =
      loop.replaceWithAdditionalYields(rewriter, firsts, /*replaceInitOperandUsesInLoop=*/false, yields);
  assert(succeeded(longer) && "a loop of the scf dialect takes any number of values");
  auto arguments = longer->getRegionIterArgs().drop_front(carried);
  for (auto [ahead, argument] : llvm::zip_equal(aheads, arguments)) {
    ahead.load.getResult().replaceAllUsesWith(argument);
    ahead.load.erase();
  }
  return true;
}
} // namespace

bool prefetchLoads(tile::KernelOp kernel) {
  SmallVector<scf::ForOp> loops;
  kernel.walk([&](scf::ForOp loop) { loops.push_back(loop); });
  bool changed = false;
  for (scf::ForOp loop : loops)
    changed |= prefetchIn(loop);
  return changed;
}

namespace {
struct KgpuPrefetchLoads final : impl::KgpuPrefetchLoadsBase<KgpuPrefetchLoads> {
  using KgpuPrefetchLoadsBase::KgpuPrefetchLoadsBase;
  void runOnOperation() override {
    if (getLaunch(getOperation()).prefetch)
      prefetchLoads(getOperation());
  }
};
} // namespace
} // namespace kpkg::kgpu
