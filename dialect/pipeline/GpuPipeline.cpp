// Which passes take a kernel at tile level to a laid-out kernel of a chip, and why in this order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/pipeline/GpuPipeline.h"
#include "dialect/kgpu/Passes.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace kpkg {

void buildGpuPipeline(OpPassManager &modulePasses, StringRef chip, unsigned candidate) {
  OpPassManager &passes = modulePasses.nest<tile::KernelOp>();
  passes.addPass(tile::createTileWidenReductions()); // what threads exchange is in f32 then
  passes.addPass(tile::createTileRelaxMath());       // while casts stand beside what they round
  kgpu::KgpuConfigureOptions launch;
  launch.chip = chip.str();
  launch.candidate = candidate;
  passes.addPass(kgpu::createKgpuConfigure(launch));  // how many threads: everything below depends on it
  passes.addPass(kgpu::createKgpuExpandAddStores());  // makes positions, which need layouts
  passes.addPass(kgpu::createKgpuDensifyDots());      // makes tiles, which need layouts
  passes.addPass(kgpu::createKgpuIm2colLoads());      // while loops say how far taps go
  passes.addPass(kgpu::createKgpuScheduleTiles());    // loops like any others from here on
  passes.addPass(kgpu::createKgpuMergeLoops());       // one ring goes through all of it
  passes.addPass(kgpu::createKgpuHoistLoads());       // before reductions become code that is hard to pass
  passes.addPass(kgpu::createKgpuMakePersistent());   // loads that all blocks repeat stand at their beginning by now
  passes.addPass(kgpu::createKgpuPrefetchLoads());    // makes carried values, which need layouts
  passes.addPass(kgpu::createKgpuExpandArgReduce());  // its positions need layouts too
  passes.addPass(kgpu::createKgpuAssignLayouts());    // who holds what
  passes.addPass(createCanonicalizerPass());          // conversions back and forth
  passes.addPass(createCSEPass());                    // constants that were cloned for their layouts
  passes.addPass(kgpu::createKgpuFoldReductions());   // once it is known what a thread holds
  passes.addPass(kgpu::createKgpuDeferReductions());  // while loops with products have one iteration in their body
  passes.addPass(kgpu::createKgpuRingLoads());        // what a thread fetches depends on its layout
  passes.addPass(kgpu::createKgpuTensorStores());     // takes shared memory that operands then do not get
  passes.addPass(kgpu::createKgpuPipelineProducts()); // while products are one op each
  passes.addPass(kgpu::createKgpuPeelLoops());        // once the iterations that differ by their products are gone
  passes.addPass(kgpu::createKgpuSplitRoles());       // accumulators have their layouts
  passes.addPass(kgpu::createKgpuSplitProducers());   // once operands are copied, and products one after the other
  passes.addPass(kgpu::createKgpuMulticast());        // once copies are there, whole
  passes.addPass(kgpu::createKgpuPipelineOperands()); // once it is known how many slots there are
  passes.addPass(kgpu::createKgpuPipelineWaits());    // before anything is expanded behind them
  passes.addPass(kgpu::createKgpuPublishParts());     // once it is known what products are waited for together
  passes.addPass(kgpu::createKgpuPingPong());         // once it is known what runs at the same time
  passes.addPass(kgpu::createKgpuRescaleConditionally()); // once nothing asks any more what products are scaled by
  passes.addPass(kgpu::createKgpuDynamicTiles());         // all before speaks of loops whose steps are known
  passes.addPass(kgpu::createKgpuVerifySchedule());       // a race or a deadlock would show on few machines, and rarely
  passes.addPass(kgpu::createKgpuSinkScalars());          // once it is known which product is the first
  passes.addPass(kgpu::createKgpuExpandScans());          // makes buffers
  passes.addPass(kgpu::createKgpuLocaliseScans());        // makes conversions
  passes.addPass(kgpu::createKgpuCoalesceStores());       // while accumulators still say whose they are
  passes.addPass(kgpu::createKgpuExpandMma());            // makes buffers
  passes.addPass(kgpu::createKgpuRingCopies());           // makes rings of those in loops
  passes.addPass(kgpu::createKgpuPreloadFragments());     // once waits and barriers of the rings are there
  passes.addPass(kgpu::createKgpuExpandDots());           // makes buffers
  passes.addPass(kgpu::createKgpuMergeReductions());      // one exchange is quicker than two
  passes.addPass(kgpu::createKgpuGroupReductions());      // so that they share a barrier
  passes.addPass(kgpu::createKgpuRematerialiseLoads());   // once the last wait of an iteration is known
  passes.addPass(kgpu::createKgpuExpandReductions());     // makes buffers, and conversions of its results
  passes.addPass(kgpu::createKgpuExpandCvt());            // makes buffers
  passes.addPass(kgpu::createKgpuAllocSmem());            // needs all buffers
  passes.addPass(kgpu::createKgpuInsertBarriers());       // needs to know which buffers overlap
  passes.addPass(kgpu::createKgpuVerify());               // what the code of one thread relies on
}

namespace {
struct GpuOptions : PassPipelineOptions<GpuOptions> {
  Option<std::string> chip{*this, "chip", llvm::cl::desc("the target, such as sm_90a"), llvm::cl::init("sm_90a")};
  Option<unsigned> candidate{*this, "candidate", llvm::cl::desc("which of the kernel's launches to take"),
                             llvm::cl::init(0)};
};
} // namespace

void registerGpuPipeline() {
  PassPipelineRegistration<GpuOptions>("gpu-pipeline", "Tile kernels to laid-out kernels of a chip",
                                       [](OpPassManager &passes, const GpuOptions &options) {
                                         buildGpuPipeline(passes, options.chip, options.candidate);
                                       });
}

} // namespace kpkg
