// Registers dialects and passes for command-line tools that read MLIR. A new pass is added here.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/pipeline/Registration.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/lower/cpu/LowerCpu.h"
#include "dialect/lower/math/VectorMath.h"
#include "dialect/lower/nvvm/ExpandMath.h"
#include "dialect/lower/nvvm/ExpandNarrowFloats.h"
#include "dialect/lower/nvvm/LowerNvvm.h"
#include "dialect/pipeline/GpuPipeline.h"
#include "dialect/plan/ir/Plan.h"
#include "dialect/plan/transforms/Passes.h"
#include "dialect/tile/ir/TileDialect.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/SCF/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"

void kpkg::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<plan_ir::PlanDialect, tile::TileDialect, kgpu::KgpuDialect, mlir::arith::ArithDialect,
                  mlir::cf::ControlFlowDialect, mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::ub::UBDialect, mlir::vector::VectorDialect>();
  lower::nvvm::registerLoweringDialects(registry);
}

void kpkg::registerPasses() {
  mlir::registerTransformsPasses();
  mlir::registerSCFPasses();
  tile::registerTilePasses();
  kgpu::registerKgpuPasses();
  registerGpuPipeline();
  lower::cpu::registerLowerCpuPasses();
  lower::nvvm::registerLowerNvvmPasses();
  lower::registerExpandVectorMathPass();
  lower::nvvm::registerExpandMathPass();
  lower::nvvm::registerExpandNarrowFloatsPass();
  plan_ir::registerPlanPasses();
}
