// Patterns from `math` ops to the emitted functions, and the pass that applies them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/VectorMath.h"
#include "dialect/lower/cpu/VectorMathFunctions.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace kpkg::lower::cpu {
namespace {

using Function = Value (*)(FloatCode &, ValueRange);

template <Value (*emit)(FloatCode &, Value)> Value unary(FloatCode &f, ValueRange operands) {
  return emit(f, operands[0]);
}

Value binaryPow(FloatCode &f, ValueRange operands) { return emitPow(f, operands[0], operands[1]); }

Value emitRsqrt(FloatCode &f, Value x) {
  Value root = math::SqrtOp::create(f.builder(), x.getLoc(), x);
  return f.div(f.number(1), root);
}

Value emitRound(FloatCode &f, Value x) {
  // Half away from zero: the largest number below 1/2 does not carry 0.49999... up to 1.
  Value half = f.copySign(f.number(f.isDouble() ? 0x1.fffffffffffffp-2 : 0x1.fffffep-2), x);
  return math::TruncOp::create(f.builder(), x.getLoc(), f.add(x, half));
}

/// Replaces one op by `function`, computing f16 and bf16 in f32.
template <typename Op> class Expand final : public OpRewritePattern<Op> {
public:
  Expand(MLIRContext *context, Function function) : OpRewritePattern<Op>(context), function(function) {}

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    Type type = op->getResult(0).getType();
    auto vector = dyn_cast<VectorType>(type);
    auto element = dyn_cast<FloatType>(vector ? vector.getElementType() : type);
    if (!element || (vector && vector.isScalable()))
      return rewriter.notifyMatchFailure(op, "neither a scalar nor a fixed vector of floats");
    if (!element.isF16() && !element.isBF16() && !element.isF32() && !element.isF64())
      return rewriter.notifyMatchFailure(op, "computed for f16, bf16, f32 and f64 only");
    Type computed = element.getWidth() < 32 ? rewriter.getF32Type() : Type(element);
    if (vector)
      computed = VectorType::get(vector.getShape(), computed);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(computed == type ? operand : arith::ExtFOp::create(rewriter, op.getLoc(), computed, operand));
    FloatCode code(rewriter, op.getLoc(), computed);
    Value result = function(code, operands);
    if (computed != type)
      result = arith::TruncFOp::create(rewriter, op.getLoc(), type, result);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  Function function;
};

class ExpandVectorMath final : public PassWrapper<ExpandVectorMath, OperationPass<>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandVectorMath)
  StringRef getArgument() const override { return "lower-cpu-expand-math"; }
  StringRef getDescription() const override {
    return "Write elementary functions on scalars and vectors out as arithmetic";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  }
  void runOnOperation() override {
    if (failed(expandVectorMath(getOperation())))
      signalPassFailure();
  }
};

} // namespace

void populateVectorMathPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<Expand<math::ExpOp>>(context, unary<emitExp>);
  patterns.add<Expand<math::Exp2Op>>(context, unary<emitExp2>);
  patterns.add<Expand<math::TanhOp>>(context, unary<emitTanh>);
  patterns.add<Expand<math::ErfOp>>(context, unary<emitErf>);
  patterns.add<Expand<math::LogOp>>(context, unary<emitLog>);
  patterns.add<Expand<math::Log2Op>>(context, unary<emitLog2>);
  patterns.add<Expand<math::SinOp>>(context, unary<emitSin>);
  patterns.add<Expand<math::CosOp>>(context, unary<emitCos>);
  patterns.add<Expand<math::PowFOp>>(context, binaryPow);
  patterns.add<Expand<math::RsqrtOp>>(context, unary<emitRsqrt>);
  patterns.add<Expand<math::RoundOp>>(context, unary<emitRound>);
}

LogicalResult expandVectorMath(Operation *root) {
  RewritePatternSet patterns(root->getContext());
  populateVectorMathPatterns(patterns);
  walkAndApplyPatterns(root, std::move(patterns));
  return success();
}

void registerExpandVectorMathPass() { PassRegistration<ExpandVectorMath>(); }

} // namespace kpkg::lower::cpu
