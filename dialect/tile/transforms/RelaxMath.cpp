// Marks f32 functions and quotients whose results only reach a narrower format as approximate.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %e = math.exp %x : tensor<1x64xf32>      %n = arith.truncf %e : tensor<1x64xf32> to tensor<1x64xbf16>
// After:  %e = math.exp %x fastmath<afn> : ...     the rest as it was
//
// On entry: any verified kernel.
// On exit: only fast-math flags have changed.
//
// `afn` permits a relative error of 2^-22, times the size of the argument where that is above 1. This is less than a
// hundredth of a unit in the last place of f16 wherever the result is finite. Sums, differences and products get
// `contract` under the same condition. A value counts as wide if any use is neither a rounding to 16 bits or less nor
// arithmetic with a narrow result.
#include "dialect/tile/ir/TileDialect.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

namespace kpkg::tile {
#define GEN_PASS_DEF_TILERELAXMATH
#include "dialect/tile/transforms/Passes.h.inc"

using namespace mlir;

namespace {
bool isF32(Value value) { return getElementTypeOrSelf(value.getType()).isF32(); }

bool roundsAway(Operation *op) {
  auto round = dyn_cast<arith::TruncFOp>(op);
  return round && getElementTypeOrSelf(round.getType()).getIntOrFloatBitWidth() <= 16;
}

/// Returns whether the op's results are as exact as its operands, up to rounding and cancellation.
bool passesErrorsOn(Operation *op) {
  return isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, arith::DivFOp, arith::NegFOp, arith::MaximumFOp,
             arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp, arith::SelectOp, math::FmaOp, math::AbsFOp,
             math::ExpOp, math::LogOp, math::Log2Op, math::SqrtOp, math::RsqrtOp, math::TanhOp, math::ErfOp, ReduceOp,
             BroadcastOp, ReshapeOp, PermuteOp, SplatOp>(op);
}

/// The f32 values whose full precision may be observed.
class WideValues {
public:
  explicit WideValues(KernelOp kernel) {
    kernel->walk([&](Operation *op) {
      if (!roundsAway(op) && !passesErrorsOn(op) && !isa<scf::ForOp, scf::YieldOp, tile::YieldOp>(op))
        for (Value operand : op->getOperands())
          add(operand);
      // Loops other than scf.for, and regions of functions, hide the uses of their values.
      if (isa<scf::YieldOp, tile::YieldOp>(op) && !isa<scf::ForOp>(op->getParentOp()))
        for (Value operand : op->getOperands())
          add(operand);
    });
    for (unsigned i = 0; i < values.size(); ++i)
      spread(values[i]);
  }

  bool contains(Value value) const { return values.contains(value); }

private:
  void add(Value value) {
    if (isF32(value))
      values.insert(value);
  }

  /// Marks the operands of a wide value as wide.
  void spread(Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      if (auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()); loop && argument.getArgNumber() > 0)
        addCarried(loop, argument.getArgNumber() - 1);
      return;
    }
    Operation *op = value.getDefiningOp();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return addCarried(loop, cast<OpResult>(value).getResultNumber());
    for (Value operand : op->getOperands())
      add(operand);
  }

  void addCarried(scf::ForOp loop, unsigned index) {
    add(loop.getInitArgs()[index]);
    add(loop.getRegionIterArgs()[index]);
    add(loop.getResults()[index]);
    add(loop.getBody()->getTerminator()->getOperand(index));
  }

  llvm::SetVector<Value> values;
};

struct TileRelaxMath final : impl::TileRelaxMathBase<TileRelaxMath> {
  void runOnOperation() override {
    WideValues wide(getOperation());
    auto mark = [&](auto op) {
      if (!isF32(op.getResult()) || wide.contains(op.getResult()))
        return;
      op.setFastmath(op.getFastmath() | arith::FastMathFlags::afn);
      ++relaxed;
    };
    auto fuse = [&](auto op) {
      bool isPartOfSum = llvm::all_of(op->getUsers(), [](Operation *user) {
        auto reduce = dyn_cast<ReduceOp>(user);
        return reduce && reduce.getKind() == ReduceKind::Sum;
      });
      // LLVM narrows a product that is rounded, including its flags. The narrow product would then be fused without
      // being rounded.
      bool isRounded = isa<arith::MulFOp>(*op) && llvm::any_of(op->getUsers(), roundsAway);
      bool isNarrow = isF32(op.getResult()) && !wide.contains(op.getResult()) && !isRounded;
      if (isNarrow || (isa<arith::MulFOp>(*op) && isPartOfSum))
        op.setFastmath(op.getFastmath() | arith::FastMathFlags::contract);
    };
    getOperation()->walk([&](Operation *op) {
      llvm::TypeSwitch<Operation *>(op)
          .Case<math::ErfOp, math::ExpOp, math::TanhOp, arith::DivFOp>(mark)
          .Case<arith::AddFOp, arith::SubFOp, arith::MulFOp>(fuse);
    });
  }
};
} // namespace
} // namespace kpkg::tile
