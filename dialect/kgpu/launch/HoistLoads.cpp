// Hoists loads, such as those of weights, to the first load of a kernel, above the reductions over a row.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %v = tile.load %x...   %s = tile.reduce sum %v...   %w = tile.load %weight...
// After:  %v = tile.load %x...   %w = tile.load %weight...    %s = tile.reduce sum %v...
//
// On entry: a kernel whose launch has `early_loads`.
// On exit: loads of read-only views are together, if their addresses allow it. They occupy registers while threads
// wait. Candidates.cpp decides whether there are enough registers.
#include "dialect/kgpu/launch/HoistLoads.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/Slices.h"
#include "dialect/kgpu/ir/LaunchOptimisations.h"
#include "dialect/kgpu/ir/Repeatable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUHOISTLOADS
#include "dialect/kgpu/Passes.h.inc"

namespace {
bool threadsWaitAt(Operation &op) {
  return op.getNumRegions() != 0 || isa<tile::ReduceOp, tile::ArgReduceOp, tile::DotOp>(op);
}

/// Returns the ops between `anchor` and `load` that `load` needs, in order. Returns nothing if one of them does more
/// than address computation.
std::optional<SmallVector<Operation *>> addressOf(tile::LoadOp load, Operation *anchor) {
  SetVector<Operation *> slice =
      sliceIn(*load->getBlock(), load->getOperands(), [&](Operation *op) { return anchor->isBeforeInBlock(op); });
  bool isAddress = llvm::all_of(slice, [](Operation *op) {
    return isRepeatable(op) && op->getNumRegions() == 0 &&
           llvm::none_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
  });
  return isAddress ? std::optional(slice.takeVector()) : std::nullopt;
}
} // namespace

bool hoistLoads(tile::KernelOp kernel, LoadReport report) {
  bool passedOne = false;
  Operation *anchor = nullptr;
  Block &body = kernel.getBody().front();
  for (auto load : llvm::make_early_inc_range(body.getOps<tile::LoadOp>())) {
    if (!anchor) {
      anchor = load;
      continue;
    }
    if (cast<tile::ViewType>(load.getView().getType()).getIsMut()) {
      report(load, "the kernel may write to the tensor");
      continue;
    }
    std::optional<SmallVector<Operation *>> address = addressOf(load, anchor);
    if (!address) {
      report(load, "its place depends on what the kernel computes");
      continue;
    }
    report(load, std::nullopt);
    passedOne |= std::any_of(std::next(anchor->getIterator()), load->getIterator(), threadsWaitAt);
    address->push_back(load);
    for (Operation *op : *address) {
      op->moveAfter(anchor);
      anchor = op;
    }
  }
  return passedOne;
}

namespace {
struct KgpuHoistLoads final : impl::KgpuHoistLoadsBase<KgpuHoistLoads> {
  void runOnOperation() override {
    hoistLoads(getOperation(), [](tile::LoadOp load, const WhyNot &why) {
      remarkOn(load, kEarlyLoads, why, "it is issued together with the first load");
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
