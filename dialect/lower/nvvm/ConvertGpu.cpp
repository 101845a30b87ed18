// Converts the GPU dialect to NVVM: kernels to `llvm.func`, ids and shuffles to device instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: gpu.func @k(%map: !llvm.ptr {llvm.byval = ...}) kernel attributes {known_block_size = ...} {
//           %0 = gpu.thread_id x   gpu.barrier   gpu.return }
// After:  llvm.func @k(%map: !llvm.ptr {llvm.byval = ..., nvvm.grid_constant}) attributes {nvvm.kernel, nvvm.reqntid =
//           ...} { %0 = nvvm.read.ptx.sreg.tid.x   nvvm.barrier0   llvm.return }
//
// MLIR's patterns (convert-gpu-to-nvvm) convert all ops except functions. MLIR's function pattern drops `llvm.byval`,
// and turns a known block size into the maximum (maxntid) instead of the exact one (reqntid).
#include "dialect/lower/nvvm/ConvertGpu.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

namespace {
/// Converts a kernel function, whose parameters already have types of the LLVM dialect.
struct ConvertKernel : OpConversionPattern<gpu::GPUFuncOp> {
  using OpConversionPattern::OpConversionPattern;

  LogicalResult matchAndRewrite(gpu::GPUFuncOp kernel, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    if (!kernel.isKernel())
      return rewriter.notifyMatchFailure(kernel, "no kernel");
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(getContext()), kernel.getArgumentTypes());
    auto function = LLVM::LLVMFuncOp::create(rewriter, kernel.getLoc(), kernel.getName(), type);
    for (NamedAttribute attribute : kernel->getDiscardableAttrs())
      if (isa_and_nonnull<NVVM::NVVMDialect>(attribute.getNameDialect()))
        function->setAttr(attribute.getName(), attribute.getValue());
    function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), rewriter.getUnitAttr());
    if (auto threads = kernel.getKnownBlockSizeAttr())
      function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(), threads);
    if (auto blocks = kernel.getKnownClusterSizeAttr())
      function->setAttr(NVVM::NVVMDialect::getClusterDimAttrName(), blocks);
    if (std::optional<ArrayAttr> attributes = kernel.getArgAttrs())
      function.setArgAttrsAttr(*attributes);
    for (unsigned number = 0; number < kernel.getNumArguments(); ++number)
      if (function.getArgAttr(number, LLVM::LLVMDialect::getByValAttrName())) // Launch parameters are never written.
        function.setArgAttr(number, NVVM::NVVMDialect::getGridConstantAttrName(), rewriter.getUnitAttr());
    rewriter.inlineRegionBefore(kernel.getBody(), function.getBody(), function.end());
    rewriter.eraseOp(kernel);
    return success();
  }
};
} // namespace

LogicalResult convertGpu(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMTypeConverter converter(context);
  RewritePatternSet patterns(context);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  patterns.add<ConvertKernel>(context, /*benefit=*/2);
  ConversionTarget target(*context);
  target.addIllegalDialect<gpu::GPUDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  // Ops of the math dialect stay legal: MLIR's patterns would turn them into library calls.
  target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
  ConversionConfig config;
  config.allowPatternRollback = false;
  return applyPartialConversion(module, target, std::move(patterns), config);
}

} // namespace kpkg::lower::nvvm
