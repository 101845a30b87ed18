// Runs the passes from tile kernels to the LLVM dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/cpu/BatchRows.h"
#include "dialect/lower/cpu/Coroutines.h"
#include "dialect/lower/cpu/KernelEmitter.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "dialect/lower/cpu/SinkStores.h"
#include "dialect/lower/cpu/WidenDots.h"
#include "dialect/lower/math/VectorMath.h"
#include "dialect/lower/scf/ConvertScf.h"
#include "dialect/tile/transforms/DensifyDots.h"
#include "dialect/tile/transforms/ExpandAddStores.h"
#include "dialect/tile/transforms/ExpandUnpacks.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorTransforms.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace kpkg::lower::cpu {

void registerLoweringDialects(DialectRegistry &registry) {
  registry.insert<tile::TileDialect, arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, math::MathDialect,
                  scf::SCFDialect, ub::UBDialect, vector::VectorDialect>();
}

LogicalResult emitKernels(ModuleOp module, const CpuTarget &target) {
  SmallVector<tile::KernelOp> kernels(module.getOps<tile::KernelOp>());
  for (tile::KernelOp kernel : kernels) {
    if (tile::isOfThreads(kernel)) {
      RowBatch alone;
      if (mlir::failed(KernelEmitter(kernel, target, alone).run()))
        return failure();
      kernel.erase();
      continue;
    }
    kernel.walk([](tile::AddStoreOp store) { tile::expandAddStore(store); });
    tile::densifyDots(kernel);
    tile::expandUnpacks(kernel);
    widenDots(kernel);
    IRRewriter rewriter(module.getContext());
    DominanceInfo dominance(kernel);
    eliminateCommonSubExpressions(rewriter, dominance, kernel);
    hoistScalars(kernel);
    RowBatch batch = batchRows(kernel);
    sinkStores(kernel);
    if (mlir::failed(KernelEmitter(kernel, target, batch).run()))
      return failure();
    kernel.erase();
  }
  return success();
}

static LogicalResult convertRest(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  return applyFullConversion(module, target, std::move(patterns));
}

/// Expands ops without a direct conversion: rounding divisions, and vector broadcasts and contractions of higher rank.
static LogicalResult expandRest(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorToFromElementsToShuffleTreePatterns(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

/// Keeps exact divisions: LLVM's approximate reciprocal of infinity is NaN, and vector division is fast enough.
static void divideExactly(ModuleOp module) {
  module.walk([](arith::DivFOp op) { op.setFastmath(arith::FastMathFlags::none); });
}

LogicalResult lowerToLLVM(ModuleOp module, const CpuTarget &target) {
  if (mlir::failed(emitKernels(module, target)))
    return failure();
  divideExactly(module);
  if (mlir::failed(expandVectorMath(module)) || mlir::failed(expandRest(module)))
    return failure();
  if (mlir::failed(convertScf(module)) || mlir::failed(convertRest(module)))
    return failure();
  splitAtSuspensions(module);
  return success();
}

namespace {
template <class Derived> struct CpuPass : PassWrapper<Derived, OperationPass<ModuleOp>> {
  CpuPass() = default;
  CpuPass(const CpuPass &other) : PassWrapper<Derived, OperationPass<ModuleOp>>(other) {}
  void getDependentDialects(DialectRegistry &registry) const override { registerLoweringDialects(registry); }
  void runOnOperation() override {
    ModuleOp module = this->getOperation();
    llvm::Expected<CpuTarget> target = CpuTarget::find(isa);
    if (!target) {
      module.emitError(llvm::toString(target.takeError()));
      return this->signalPassFailure();
    }
    if (mlir::failed(Derived::lower(module, *target)))
      this->signalPassFailure();
  }
  Pass::Option<std::string> isa{*this, "isa", llvm::cl::desc("instruction set level"), llvm::cl::init("x86-64-v3")};
};

struct LowerCpuPass : CpuPass<LowerCpuPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerCpuPass)
  StringRef getArgument() const override { return "lower-cpu"; }
  StringRef getDescription() const override { return "Lower tile kernels to the LLVM dialect for a CPU target"; }
  static LogicalResult lower(ModuleOp module, const CpuTarget &target) { return lowerToLLVM(module, target); }
};

struct EmitCpuPass : CpuPass<EmitCpuPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(EmitCpuPass)
  StringRef getArgument() const override { return "lower-cpu-emit"; }
  StringRef getDescription() const override { return "Turn tile kernels into loops over vectors for a CPU target"; }
  static LogicalResult lower(ModuleOp module, const CpuTarget &target) { return emitKernels(module, target); }
};
} // namespace

void registerLowerCpuPasses() {
  PassRegistration<LowerCpuPass>();
  PassRegistration<EmitCpuPass>();
}

} // namespace kpkg::lower::cpu
