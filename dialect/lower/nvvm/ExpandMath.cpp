// Expands elementary functions to arithmetic and instructions of the special function unit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %e = math.exp2 %x : f32
// After:  %e = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%x) : (f32) -> f32
//
// On entry: ops on scalars, and on vectors, which are expanded as on CPUs.
// On exit: no math op remains that LLVM would lower to a call.
#include "dialect/lower/nvvm/ExpandMath.h"
#include "dialect/lower/math/ExpandFunction.h"
#include "dialect/lower/math/VectorMath.h"
#include "dialect/lower/math/VectorMathCoefficients.h"
#include "dialect/lower/math/VectorMathFunctions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Support/xxhash.h"

namespace kpkg::lower::nvvm {
using namespace mlir;

namespace {
/// Emits f32 code in which a quotient may be off by 2 units. `div.full` takes 3 instructions; a correctly rounded
/// division needs a slow path.
class GpuCode final : public FloatCode {
public:
  using FloatCode::FloatCode;
  Value div(Value x, Value y) override { return intrinsic("llvm.nvvm.div.full", {x, y}); }
  Value intrinsic(StringRef name, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, type(), b.getStringAttr(name), operands).getResult(0);
  }
};

Value intrinsic(FloatCode &f, StringRef name, ValueRange operands) {
  return static_cast<GpuCode &>(f).intrinsic(name, operands);
}

/// Flushes results below 2^-126 to 0: keeping them would cost more than the rest.
Value emitExp2(FloatCode &f, Value x) { return intrinsic(f, "llvm.nvvm.ex2.approx.ftz.f32", x); }

Value emitRsqrt(FloatCode &f, Value x) { return intrinsic(f, "llvm.nvvm.rsqrt.approx.f", x); }

Value emitExp(FloatCode &f, Value x) {
  // exp(x) = 2^n * 2^r with n = round(x * log2(e)), clamped to [-126, 127]. Beyond the clamp r grows instead, until 2^r
  // overflows or underflows to the correct result. The clamp is the saturation of a fused multiply-add: 253 * sat(t /
  // 253 + 126 / 253) - 126.
  constexpr double log2e = 0x1.715476p0, log2eLow = 0x1.4ae0bep-26, steps = 253, magic = 0x1.8p23;
  Value part = intrinsic(f, "llvm.nvvm.fma.rn.sat.f", {x, f.number(log2e / steps), f.number(126 / steps)});
  Value shifted = f.fma(part, f.number(steps), f.number(magic - 126));
  Value n = f.sub(shifted, f.number(magic));
  Value r = f.fma(x, f.number(log2e), f.negate(n));
  r = f.fma(x, f.number(log2eLow), r);
  return f.mul(intrinsic(f, "llvm.nvvm.ex2.approx.ftz.f32", r), f.powerOfTwo(shifted));
}

/// For results that are rounded to 16 bits: the rounding error of the product grows with |x|.
Value emitRelaxedExp(FloatCode &f, Value x) {
  return intrinsic(f, "llvm.nvvm.ex2.approx.ftz.f32", f.mul(x, f.number(0x1.715476p0)));
}

Value emitRelaxedDivision(FloatCode &f, ValueRange operands) { return f.div(operands[0], operands[1]); }

/// Applies `function` to ops of type `Op` where the `afn` flag allows it.
template <typename Op> class ExpandRelaxed final : public OpRewritePattern<Op> {
public:
  ExpandRelaxed(MLIRContext *context, EmitFunction function)
      : OpRewritePattern<Op>(context, /*benefit=*/3), expand(context, function, 3, true) {}
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn))
      return rewriter.notifyMatchFailure(op, "must be exact");
    return expand.matchAndRewrite(op, rewriter);
  }

private:
  ExpandFunction<Op, GpuCode> expand;
};

/// Replaces 1 / x by the reciprocal of the special function unit where `arcp` allows it. It is off by 1 unit, and 0 for
/// results below 2^-126.
class ExpandReciprocal final : public OpRewritePattern<arith::DivFOp> {
public:
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    if (!bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::arcp) || !op.getType().isF32() ||
        !matchPattern(op.getLhs(), m_OneFloat()))
      return rewriter.notifyMatchFailure(op, "not an approximate reciprocal in f32");
    GpuCode code(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, intrinsic(code, "llvm.nvvm.rcp.approx.ftz.f", op.getRhs()));
    return success();
  }
};

/// Emits 1 - 2 / (exp(2 |x|) + 1). This loses bits below the last place of 1, so arguments below `limit` use a
/// polynomial.
Value emitTanh(FloatCode &f, Value x, ArrayRef<double> near, double limit) {
  Value magnitude = f.abs(x), square = f.mul(x, x);
  Value small = f.fma(f.mul(square, x), f.polynomial(near, square), x);
  Value power = intrinsic(f, "llvm.nvvm.ex2.approx.ftz.f32", f.mul(magnitude, f.number(0x1.715476p1)));
  Value inverse = intrinsic(f, "llvm.nvvm.rcp.approx.ftz.f", f.add(power, f.number(1)));
  Value large = f.copySign(f.fma(inverse, f.number(-2), f.number(1)), x);
  return f.select(f.less(magnitude, f.number(limit)), small, large);
}

Value emitTanh(FloatCode &f, Value x) { return emitTanh(f, x, coefficients::tanhSmallF32, 0.8); }

Value emitRelaxedTanh(FloatCode &f, Value x) { return emitTanh(f, x, coefficients::tanhNearF32, 0.3); }

/// Emits 1 - 2^(t q(t)), and below `limit` erf(x) / x - 1 as a polynomial in x^2. The error of the power weighs more,
/// the closer to 0 it is used.
Value emitErf(FloatCode &f, Value x, ArrayRef<double> near, double limit) {
  Value t = f.atMost(f.abs(x), 4.25);
  Value exponent = f.mul(t, f.polynomial(coefficients::erfcExponentF32, t));
  Value far = f.sub(f.number(1), intrinsic(f, "llvm.nvvm.ex2.approx.ftz.f32", exponent));
  Value small = f.fma(x, f.polynomial(near, f.mul(x, x)), x);
  return f.select(f.less(t, f.number(limit)), small, f.copySign(far, x));
}

/// Emits erf with an error of at most 2 units in the last place.
Value emitErf(FloatCode &f, Value x) { return emitErf(f, x, coefficients::erfF32, 1); }

/// Emits erf with an error of at most 8 units in the last place.
Value emitRelaxedErf(FloatCode &f, Value x) { return emitErf(f, x, coefficients::erfNearF32, 0.3); }

class ExpandMath final : public PassWrapper<ExpandMath, OperationPass<>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandMath)
  StringRef getArgument() const override { return "nvvm-expand-math"; }
  StringRef getDescription() const override {
    return "Write elementary functions on scalars out for NVIDIA GPUs, without libdevice";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<arith::ArithDialect, LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect, vector::VectorDialect>();
  }
  void runOnOperation() override { expandMath(getOperation()); }
};
} // namespace

void populateExpandMathPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  populateVectorMathPatterns(patterns);
  patterns.add<ExpandFunction<math::ExpOp, GpuCode>>(context, unaryFunction<nvvm::emitExp>, 2, true);
  patterns.add<ExpandRelaxed<math::ExpOp>>(context, unaryFunction<nvvm::emitRelaxedExp>);
  patterns.add<ExpandRelaxed<math::TanhOp>>(context, unaryFunction<nvvm::emitRelaxedTanh>);
  patterns.add<ExpandRelaxed<math::ErfOp>>(context, unaryFunction<nvvm::emitRelaxedErf>);
  patterns.add<ExpandRelaxed<arith::DivFOp>>(context, nvvm::emitRelaxedDivision);
  patterns.add<ExpandReciprocal>(context, /*benefit=*/4);
  patterns.add<ExpandFunction<math::Exp2Op, GpuCode>>(context, unaryFunction<nvvm::emitExp2>, 2, true);
  patterns.add<ExpandFunction<math::RsqrtOp, GpuCode>>(context, unaryFunction<nvvm::emitRsqrt>, 2, true);
  patterns.add<ExpandFunction<math::TanhOp, GpuCode>>(context, unaryFunction<nvvm::emitTanh>, 2, true);
  patterns.add<ExpandFunction<math::ErfOp, GpuCode>>(context, unaryFunction<nvvm::emitErf>, 2, true);
}

/// Moves the table of a function to constant memory. Selecting from a vector in registers would need a stack frame.
static void moveToConstantMemory(vector::ExtractOp extract, DenseIntElementsAttr table) {
  constexpr unsigned constantSpace = 4;
  Operation *symbols = extract->getParentWithTrait<OpTrait::SymbolTable>();
  ImplicitLocOpBuilder b(extract.getLoc(), extract);
  auto element = cast<IntegerType>(table.getElementType());
  auto array = LLVM::LLVMArrayType::get(element, table.getNumElements());
  ArrayRef<char> bytes = table.getRawData();
  std::string name = "kpkg_table_" + llvm::utohexstr(llvm::xxh3_64bits(StringRef(bytes.data(), bytes.size())));
  if (!SymbolTable::lookupSymbolIn(symbols, name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(&symbols->getRegion(0).front());
    Attribute values = table.reshape(RankedTensorType::get(table.getNumElements(), element));
    LLVM::GlobalOp::create(b, array, /*isConstant=*/true, LLVM::Linkage::Internal, name, values, /*alignment=*/8,
                           constantSpace);
  }
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), constantSpace);
  Value address = LLVM::AddressOfOp::create(b, pointer, name);
  Value index = arith::IndexCastOp::create(b, b.getI64Type(), extract.getDynamicPosition().front());
  address = LLVM::GEPOp::create(b, pointer, element, address, ArrayRef<LLVM::GEPArg>{index});
  Value loaded = LLVM::LoadOp::create(b, element, address, element.getWidth() / 8);
  extract.replaceAllUsesWith(loaded);
  extract.erase();
}

void expandMath(Operation *root) {
  RewritePatternSet patterns(root->getContext());
  populateExpandMathPatterns(patterns);
  walkAndApplyPatterns(root, std::move(patterns));
  root->walk([](vector::ExtractOp extract) {
    DenseIntElementsAttr table;
    if (extract.hasDynamicPosition() && matchPattern(extract.getSource(), m_Constant(&table)))
      moveToConstantMemory(extract, table);
  });
}

void registerExpandMathPass() { PassRegistration<ExpandMath>(); }
} // namespace kpkg::lower::nvvm
