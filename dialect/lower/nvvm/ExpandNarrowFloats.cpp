// Expands arithmetic and conversions of 8-bit floats to f32 and integer arithmetic.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %c = arith.mulf %a, %b : f8E5M2
// After:  integer code that extends %a and %b to f32, arith.mulf ... : f32, integer code that rounds
//
// The hardware's conversion instructions are not used: they saturate on overflow, where the language requires infinity
// or NaN.
//
// On entry: ops on scalars.
// On exit: 8-bit floats are only moved, selected and bitcast.
#include "dialect/lower/nvvm/ExpandNarrowFloats.h"
#include "dialect/lower/math/NarrowFloats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Pass/Pass.h"

namespace kpkg::lower::nvvm {
using namespace mlir;

namespace {
Value extended(OpBuilder &builder, Location loc, Value value, Type to) {
  Value bits = arith::BitcastOp::create(builder, loc, builder.getI8Type(), value);
  Value wide = extendToF32(builder, loc, bits, value.getType());
  if (to.isF64())
    return arith::ExtFOp::create(builder, loc, to, wide);
  // Every 8-bit value is exactly representable in f16 and bf16.
  return to.isF32() ? wide : arith::TruncFOp::create(builder, loc, to, wide).getResult();
}

Value rounded(OpBuilder &builder, Location loc, Value value, Type to) {
  if (value.getType().getIntOrFloatBitWidth() < 32)
    value = arith::ExtFOp::create(builder, loc, builder.getF32Type(), value);
  return arith::BitcastOp::create(builder, loc, to, roundToNarrow(builder, loc, value, to));
}

/// Replaces the op by an op on f32.
void widen(Operation *op) {
  OpBuilder builder(op);
  Location loc = op->getLoc();
  IRMapping mapping;
  for (Value operand : op->getOperands())
    if (isFloat8(operand.getType()) && !mapping.contains(operand))
      mapping.map(operand, extended(builder, loc, operand, builder.getF32Type()));
  Operation *wide = builder.clone(*op, mapping);
  for (auto [result, original] : llvm::zip_equal(wide->getResults(), op->getResults())) {
    Type type = original.getType();
    if (!isFloat8(type)) {
      original.replaceAllUsesWith(result);
      continue;
    }
    result.setType(builder.getF32Type());
    original.replaceAllUsesWith(rounded(builder, loc, result, type));
  }
  op->erase();
}

class ExpandNarrowFloats final : public PassWrapper<ExpandNarrowFloats, OperationPass<>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandNarrowFloats)
  StringRef getArgument() const override { return "nvvm-expand-narrow-floats"; }
  StringRef getDescription() const override { return "Compute 8-bit floats in f32, converted by integer arithmetic"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<arith::ArithDialect>(); }
  void runOnOperation() override { expandNarrowFloats(getOperation()); }
};
} // namespace

void expandNarrowFloats(Operation *root) {
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    bool computes = op->hasTrait<OpTrait::Elementwise>() && !isa<arith::SelectOp, arith::BitcastOp>(op);
    if (computes && (llvm::any_of(op->getOperandTypes(), isFloat8) || llvm::any_of(op->getResultTypes(), isFloat8)))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder builder(op);
    Value result;
    // The other side of a conversion may have 8 bits too.
    if (auto extend = dyn_cast<arith::ExtFOp>(op); extend && !isFloat8(extend.getType()))
      result = extended(builder, op->getLoc(), extend.getIn(), extend.getType());
    else if (auto truncate = dyn_cast<arith::TruncFOp>(op); truncate && !isFloat8(truncate.getIn().getType()))
      result = rounded(builder, op->getLoc(), truncate.getIn(), truncate.getType());
    if (!result) {
      widen(op);
      continue;
    }
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }
}

void registerExpandNarrowFloatsPass() { PassRegistration<ExpandNarrowFloats>(); }
} // namespace kpkg::lower::nvvm
