// Defines the pattern that replaces one op of the math dialect by the code of a function.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/math/VectorMathCode.h"
#include "mlir/IR/PatternMatch.h"

namespace kpkg::lower {

using EmitFunction = mlir::Value (*)(FloatCode &, mlir::ValueRange);

template <mlir::Value (*emit)(FloatCode &, mlir::Value)>
mlir::Value unaryFunction(FloatCode &f, mlir::ValueRange operands) {
  return emit(f, operands[0]);
}

/// Replaces one op by `function`, which computes f16 and bf16 in f32. `Code` emits the arithmetic. With `onlyInF32` the
/// pattern does not match f64 and vectors.
template <typename Op, typename Code = FloatCode> class ExpandFunction final : public mlir::OpRewritePattern<Op> {
public:
  ExpandFunction(mlir::MLIRContext *context, EmitFunction function, mlir::PatternBenefit benefit = 1,
                 bool onlyInF32 = false)
      : mlir::OpRewritePattern<Op>(context, benefit), function(function), onlyInF32(onlyInF32) {}

  mlir::LogicalResult matchAndRewrite(Op op, mlir::PatternRewriter &rewriter) const override {
    using namespace mlir;
    Type type = op->getResult(0).getType();
    auto vector = dyn_cast<VectorType>(type);
    auto element = dyn_cast<FloatType>(vector ? vector.getElementType() : type);
    if (!element || (vector && vector.isScalable()))
      return rewriter.notifyMatchFailure(op, "neither a scalar nor a fixed vector of floats");
    if (!element.isF16() && !element.isBF16() && !element.isF32() && !element.isF64())
      return rewriter.notifyMatchFailure(op, "computed for f16, bf16, f32 and f64 only");
    if (onlyInF32 && (vector || element.isF64()))
      return rewriter.notifyMatchFailure(op, "for f32 scalars only");
    Type computed = element.getWidth() < 32 ? rewriter.getF32Type() : Type(element);
    if (vector)
      computed = VectorType::get(vector.getShape(), computed);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(computed == type ? operand : arith::ExtFOp::create(rewriter, op.getLoc(), computed, operand));
    Code code(rewriter, op.getLoc(), computed);
    Value result = function(code, operands);
    if (computed != type)
      result = arith::TruncFOp::create(rewriter, op.getLoc(), type, result);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  EmitFunction function;
  bool onlyInF32;
};

} // namespace kpkg::lower
