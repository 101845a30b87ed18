// Rewrites `math` ops to the emitted functions, and defines the pass that applies the patterns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/math/VectorMath.h"
#include "dialect/lower/math/ExpandFunction.h"
#include "dialect/lower/math/VectorMathFunctions.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace kpkg::lower {
namespace {

Value binaryPow(FloatCode &f, ValueRange operands) { return emitPow(f, operands[0], operands[1]); }

Value emitRsqrt(FloatCode &f, Value x) {
  Value root = math::SqrtOp::create(f.builder(), x.getLoc(), x);
  return f.div(f.number(1), root);
}

Value emitRound(FloatCode &f, Value x) {
  // Rounds half away from zero. Adding the largest number below 1/2 does not round 0.49999... up to 1.
  Value half = f.copySign(f.number(f.isDouble() ? 0x1.fffffffffffffp-2 : 0x1.fffffep-2), x);
  return math::TruncOp::create(f.builder(), x.getLoc(), f.add(x, half));
}

/// Returns the erf of a sum 1 + erf(x) in f32 that nothing else reads, else null.
math::ErfOp erfOfComplement(arith::AddFOp sum) {
  if (!getElementTypeOrSelf(sum.getType()).isF32())
    return nullptr;
  Value term = matchPattern(sum.getLhs(), m_OneFloat()) ? sum.getRhs() : sum.getLhs();
  Value other = term == sum.getLhs() ? sum.getRhs() : sum.getLhs();
  auto erf = term.getDefiningOp<math::ErfOp>();
  return erf && erf->hasOneUse() && matchPattern(other, m_OneFloat()) ? erf : nullptr;
}

/// Replaces 1 + erf(x), as the normal distribution has it, by erfc(-x): it needs no division, and does not cancel.
void expandComplements(Operation *root) {
  root->walk([](arith::AddFOp sum) {
    math::ErfOp erf = erfOfComplement(sum);
    if (!erf)
      return;
    OpBuilder builder(sum);
    FloatCode code(builder, sum.getLoc(), sum.getType());
    sum.replaceAllUsesWith(emitErfc(code, code.negate(erf.getOperand())));
    sum.erase();
    erf.erase();
  });
}

class ExpandVectorMath final : public PassWrapper<ExpandVectorMath, OperationPass<>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandVectorMath)
  StringRef getArgument() const override { return "lower-expand-math"; }
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
  patterns.add<ExpandFunction<math::ExpOp>>(context, unaryFunction<emitExp>);
  patterns.add<ExpandFunction<math::Exp2Op>>(context, unaryFunction<emitExp2>);
  patterns.add<ExpandFunction<math::TanhOp>>(context, unaryFunction<emitTanh>);
  patterns.add<ExpandFunction<math::ErfOp>>(context, unaryFunction<emitErf>);
  patterns.add<ExpandFunction<math::LogOp>>(context, unaryFunction<emitLog>);
  patterns.add<ExpandFunction<math::Log2Op>>(context, unaryFunction<emitLog2>);
  patterns.add<ExpandFunction<math::SinOp>>(context, unaryFunction<emitSin>);
  patterns.add<ExpandFunction<math::CosOp>>(context, unaryFunction<emitCos>);
  patterns.add<ExpandFunction<math::PowFOp>>(context, binaryPow);
  patterns.add<ExpandFunction<math::RsqrtOp>>(context, unaryFunction<emitRsqrt>);
  patterns.add<ExpandFunction<math::RoundOp>>(context, unaryFunction<emitRound>);
}

LogicalResult expandVectorMath(Operation *root) {
  expandComplements(root);
  RewritePatternSet patterns(root->getContext());
  populateVectorMathPatterns(patterns);
  walkAndApplyPatterns(root, std::move(patterns));
  return success();
}

void registerExpandVectorMathPass() { PassRegistration<ExpandVectorMath>(); }

} // namespace kpkg::lower
