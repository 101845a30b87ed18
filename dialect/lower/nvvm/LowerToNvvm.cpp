// Runs the passes from laid-out kernels to the GPU dialect, and from there to the LLVM and NVVM dialects.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/ConvertGpu.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/ExpandMath.h"
#include "dialect/lower/nvvm/ExpandNarrowFloats.h"
#include "dialect/lower/nvvm/LowerNvvm.h"
#include "dialect/lower/scf/ConvertScf.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

void registerLoweringDialects(DialectRegistry &registry) {
  registry.insert<kgpu::KgpuDialect, tile::TileDialect, arith::ArithDialect, cf::ControlFlowDialect, gpu::GPUDialect,
                  LLVM::LLVMDialect, math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect, ub::UBDialect,
                  vector::VectorDialect>();
}

LogicalResult lowerToGpu(ModuleOp module) {
  SmallVector<tile::KernelOp> kernels(module.getOps<tile::KernelOp>());
  if (kernels.empty())
    return success();
  OpBuilder builder(kernels.front());
  auto gpuModule = gpu::GPUModuleOp::create(builder, module.getLoc(), "kernels");
  for (tile::KernelOp kernel : kernels) {
    builder.setInsertionPointToEnd(gpuModule.getBody());
    if (failed(Emitter(kernel, builder).run()))
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
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp, gpu::GPUModuleOp, UnrealizedConversionCastOp>();
  target.addLegalDialect<NVVM::NVVMDialect>();
  // Rollback would take a third of the time and is never needed: an op without a pattern is an error.
  ConversionConfig config;
  config.allowPatternRollback = false;
  if (failed(applyFullConversion(module, target, std::move(patterns), config)))
    return failure();
  SmallVector<UnrealizedConversionCastOp> casts;
  module.walk([&](UnrealizedConversionCastOp cast) { casts.push_back(cast); });
  reconcileUnrealizedCasts(casts);
  return success();
}

/// Expands rounding divisions, which have no conversion of their own.
static LogicalResult expandDivisions(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

LogicalResult lowerToNvvm(ModuleOp module) {
  if (failed(lowerToGpu(module)))
    return failure();
  expandNarrowFloats(module);
  expandMath(module);
  return failure(failed(expandDivisions(module)) || failed(convertScf(module)) || failed(convertGpu(module)) ||
                 failed(convertRest(module)));
}

namespace {
template <class Derived> struct NvvmPass : PassWrapper<Derived, OperationPass<ModuleOp>> {
  void getDependentDialects(DialectRegistry &registry) const override { registerLoweringDialects(registry); }
  void runOnOperation() override {
    if (failed(Derived::lower(this->getOperation())))
      this->signalPassFailure();
  }
};

struct LowerNvvmPass : NvvmPass<LowerNvvmPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerNvvmPass)
  StringRef getArgument() const override { return "lower-nvvm"; }
  StringRef getDescription() const override {
    return "Lower laid-out kernels to GPU modules in the LLVM and NVVM dialects";
  }
  static LogicalResult lower(ModuleOp module) { return lowerToNvvm(module); }
};

struct LowerGpuPass : NvvmPass<LowerGpuPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerGpuPass)
  StringRef getArgument() const override { return "lower-gpu"; }
  StringRef getDescription() const override {
    return "Lower laid-out kernels to the code of one thread in the GPU and NVVM dialects";
  }
  static LogicalResult lower(ModuleOp module) { return lowerToGpu(module); }
};
} // namespace

void registerLowerNvvmPasses() {
  PassRegistration<LowerNvvmPass>();
  PassRegistration<LowerGpuPass>();
}

} // namespace kpkg::lower::nvvm
