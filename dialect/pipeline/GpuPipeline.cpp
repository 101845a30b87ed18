// Takes a kernel at tile level to a laid-out kernel of a chip: the head, the choice of a pipeline, the shared phases.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/pipeline/GpuPipeline.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/pipeline/Phases.h"
#include "dialect/tile/ir/ThreadOps.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace kpkg {

KernelKind kindOf(tile::KernelOp kernel) {
  if (tile::isOfThreads(kernel))
    return KernelKind::Threads;
  if (kgpu::getLaunch(kernel).consumers != 0)
    return KernelKind::Warpgroups;
  return kgpu::containsOp<tile::DotOp>(kernel) ? KernelKind::Mma : KernelKind::Rows;
}

void addLayouts(OpPassManager &passes) {
  passes.addPass(kgpu::createKgpuPlaceScratch());    // before other buffers share what it leaves
  passes.addPass(kgpu::createKgpuExpandArgReduce()); // creates tiles of positions, which need layouts
  passes.addPass(kgpu::createKgpuAssignLayouts());   // before passes that need the elements of a thread
  passes.addPass(createCanonicalizerPass());         // removes conversions that cancel out
  passes.addPass(createCSEPass());                   // merges constants that were cloned for their layouts
  passes.addPass(kgpu::createKgpuVerify());          // later passes rely on the layouts
  passes.addPass(kgpu::createKgpuFoldReductions());  // needs to know which elements a thread holds
}

void addExpansion(OpPassManager &passes) {
  passes.addPass(kgpu::createKgpuExpandReductions()); // creates buffers, and conversions of its results
  passes.addPass(kgpu::createKgpuExpandCvt());        // creates buffers
}

void addAllocation(OpPassManager &passes) {
  passes.addPass(kgpu::createKgpuAllocSmem());      // needs all buffers
  passes.addPass(kgpu::createKgpuInsertBarriers()); // needs to know which buffers overlap
  passes.addPass(kgpu::createKgpuVerify());         // checks properties that the per-thread lowering needs
}

namespace {
/// Runs the pipeline of the kernel's kind, which is known once the kernel is configured.
class RunPipelineOfKind final : public PassWrapper<RunPipelineOfKind, OperationPass<tile::KernelOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(RunPipelineOfKind)

  StringRef getArgument() const override { return "gpu-pipeline-of-kind"; }
  StringRef getDescription() const override {
    return "runs the pipeline of rows, of mma.sync, of warpgroups or of threads";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<kgpu::KgpuDialect, scf::SCFDialect, arith::ArithDialect, math::MathDialect, ub::UBDialect>();
  }

  void runOnOperation() override {
    OpPassManager passes(tile::KernelOp::getOperationName());
    kgpu::Launch launch = kgpu::getLaunch(getOperation());
    switch (kindOf(getOperation())) {
    case KernelKind::Rows:
      addRowPasses(passes, launch);
      break;
    case KernelKind::Mma:
      addMmaPasses(passes, launch);
      break;
    case KernelKind::Threads:
      addThreadPasses(passes);
      break;
    case KernelKind::Warpgroups:
      addWarpgroupPasses(passes, launch);
      break;
    }
    if (failed(runPipeline(passes, getOperation())))
      signalPassFailure();
  }
};
} // namespace

void buildGpuPipeline(OpPassManager &modulePasses, StringRef chip, unsigned candidate) {
  OpPassManager &passes = modulePasses.nest<tile::KernelOp>();
  passes.addPass(tile::createTileWidenReductions()); // partial results that threads exchange are f32 after it
  passes.addPass(tile::createTileRelaxMath());       // while each cast directly follows the op that it rounds
  kgpu::KgpuConfigureOptions launch;
  launch.chip = chip.str();
  launch.candidate = candidate;
  passes.addPass(kgpu::createKgpuConfigure(launch)); // sets the thread count, which all later passes use
  passes.addPass(std::make_unique<RunPipelineOfKind>());
}

namespace {
struct GpuOptions : PassPipelineOptions<GpuOptions> {
  Option<std::string> chip{*this, "chip", llvm::cl::desc("the target, such as sm_90a"), llvm::cl::init("sm_90a")};
  Option<unsigned> candidate{
      *this, "candidate", llvm::cl::desc("which of the candidates a kernel without a launch gets"), llvm::cl::init(0)};
};
} // namespace

void registerGpuPipeline() {
  PassPipelineRegistration<GpuOptions>("gpu-pipeline", "Tile kernels to laid-out kernels of a chip",
                                       [](OpPassManager &passes, const GpuOptions &options) {
                                         buildGpuPipeline(passes, options.chip, options.candidate);
                                       });
}

} // namespace kpkg
