// Moves independent reductions across warps next to each other, so that they share an exchange.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %s = tile.reduce sum %a axis 1     After: %p = arith.mulf %a, %b
//         %m = use of %s                            %s = tile.reduce sum %a axis 1
//         %p = arith.mulf %a, %b                    %t = tile.reduce sum %p axis 1
//         %t = tile.reduce sum %p axis 1            %m = use of %s
//
// On entry: every tile has a layout.
// On exit: only the order of ops without effects has changed.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/Slices.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUGROUPREDUCTIONS
#include "dialect/kgpu/Passes.h.inc"

namespace {
bool isAcrossWarps(tile::ReduceOp op) { return !isWithinWarp(layoutOf(op.getValue()), op.getAxis()); }

/// Moves `op` and the ops that it needs to `leader`, after reductions already there; returns false if that is
/// impossible.
bool bringUp(tile::ReduceOp op, tile::ReduceOp leader, Operation *&last) {
  SetVector<Operation *> slice =
      sliceIn(*op->getBlock(), op->getOperands(), [&](Operation *needed) { return !needed->isBeforeInBlock(leader); });
  for (Operation *needed : slice)
    if (!isMemoryEffectFree(needed) || isa<tile::ReduceOp>(needed))
      return false;
  for (Operation *needed : slice)
    needed->moveBefore(leader);
  op->moveAfter(last);
  last = op;
  return true;
}

constexpr Optimisation kGroup{"kgpu-group-reductions", "reductions that share an exchange"};

struct GroupReductions final : impl::KgpuGroupReductionsBase<GroupReductions> {
  void runOnOperation() override {
    getOperation().walk([](Block *block) {
      SmallVector<tile::ReduceOp> waiting;
      for (auto op : block->getOps<tile::ReduceOp>())
        if (isAcrossWarps(op))
          waiting.push_back(op);
      while (waiting.size() > 1) {
        tile::ReduceOp leader = waiting.front();
        Operation *last = leader;
        SmallVector<tile::ReduceOp> rest;
        for (tile::ReduceOp op : llvm::drop_begin(waiting)) {
          if (bringUp(op, leader, last)) {
            remarkApplied(op, kGroup, "warps meet once for this reduction and an earlier one");
            continue;
          }
          remarkRefused(op, kGroup, "its tile depends on an earlier reduction, or on a load or store between them");
          rest.push_back(op);
        }
        waiting = std::move(rest);
      }
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
