// Builds the pass pipeline that takes a kernel from tile level to a laid-out kernel of a chip.
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
  passes.addPass(tile::createTileWidenReductions()); // partial results that threads exchange are f32 after it
  passes.addPass(tile::createTileRelaxMath());       // while each cast directly follows the op that it rounds
  kgpu::KgpuConfigureOptions launch;
  launch.chip = chip.str();
  launch.candidate = candidate;
  passes.addPass(kgpu::createKgpuConfigure(launch));  // sets the thread count, which all later passes use
  passes.addPass(kgpu::createKgpuExpandAddStores());  // creates index tiles, which need layouts
  passes.addPass(kgpu::createKgpuDensifyDots());      // creates tiles, which need layouts
  passes.addPass(kgpu::createKgpuIm2colLoads());      // while loop bounds give the range of taps
  passes.addPass(kgpu::createKgpuScheduleTiles());    // leaves only scf loops for later passes
  passes.addPass(kgpu::createKgpuMergeLoops());       // so that one ring serves the merged loop
  passes.addPass(kgpu::createKgpuHoistLoads());       // before reductions are expanded to code that loads cannot pass
  passes.addPass(kgpu::createKgpuMakePersistent());   // after loads that all blocks repeat are hoisted to the beginning
  passes.addPass(kgpu::createKgpuPrefetchLoads());    // creates carried tiles, which need layouts
  passes.addPass(kgpu::createKgpuExpandArgReduce());  // creates tiles of positions, which need layouts
  passes.addPass(kgpu::createKgpuAssignLayouts());    // before passes that need the elements of a thread
  passes.addPass(createCanonicalizerPass());          // removes conversions that cancel out
  passes.addPass(createCSEPass());                    // merges constants that were cloned for their layouts
  passes.addPass(kgpu::createKgpuFoldReductions());   // needs to know which elements a thread holds
  passes.addPass(kgpu::createKgpuDeferReductions());  // before loops with products are software-pipelined
  passes.addPass(kgpu::createKgpuRingLoads());        // each thread fetches the elements of its layout
  passes.addPass(kgpu::createKgpuTensorStores());     // takes its shared memory before rings share the rest
  passes.addPass(kgpu::createKgpuPipelineProducts()); // while each product is one tile.dot
  passes.addPass(kgpu::createKgpuPeelLoops());        // after pipelining has peeled iterations with other products
  passes.addPass(kgpu::createKgpuSplitRoles());       // needs the layouts of accumulators
  passes.addPass(kgpu::createKgpuSplitProducers());   // needs copied operands, and a wait after each product
  passes.addPass(kgpu::createKgpuMulticast());        // needs the copies, while they are whole
  passes.addPass(kgpu::createKgpuPipelineOperands()); // needs the number of slots of each ring
  passes.addPass(kgpu::createKgpuPipelineWaits());    // before ops behind the waits are expanded
  passes.addPass(kgpu::createKgpuPublishParts());     // needs to know which products are waited for together
  passes.addPass(kgpu::createKgpuPingPong());         // needs final waits, which determine the overlap
  passes.addPass(kgpu::createKgpuRescaleConditionally()); // after passes that match scalings of accumulators
  passes.addPass(kgpu::createKgpuDynamicTiles());         // replaces loops with known steps, which passes above match
  passes.addPass(kgpu::createKgpuVerifySchedule());       // finds races and deadlocks, which tests rarely show
  passes.addPass(kgpu::createKgpuSinkScalars());          // needs to know which product comes first
  passes.addPass(kgpu::createKgpuExpandScans());          // creates buffers
  passes.addPass(kgpu::createKgpuLocaliseScans());        // creates conversions
  passes.addPass(kgpu::createKgpuCoalesceStores());       // while accumulators have their instructions' layouts
  passes.addPass(kgpu::createKgpuExpandMma());            // creates buffers
  passes.addPass(kgpu::createKgpuRingCopies());           // turns buffers in loops into rings
  passes.addPass(kgpu::createKgpuPreloadFragments());     // needs waits and barriers of the rings
  passes.addPass(kgpu::createKgpuExpandDots());           // creates buffers
  passes.addPass(kgpu::createKgpuMergeReductions());    // before expansion, so that merged reductions share an exchange
  passes.addPass(kgpu::createKgpuGroupReductions());    // before expansion, so that adjacent reductions share a barrier
  passes.addPass(kgpu::createKgpuRematerialiseLoads()); // needs to know the last wait of an iteration
  passes.addPass(kgpu::createKgpuExpandReductions());   // creates buffers, and conversions of its results
  passes.addPass(kgpu::createKgpuExpandCvt());          // creates buffers
  passes.addPass(kgpu::createKgpuAllocSmem());          // needs all buffers
  passes.addPass(kgpu::createKgpuInsertBarriers());     // needs to know which buffers overlap
  passes.addPass(kgpu::createKgpuVerify());             // checks properties that the per-thread lowering needs
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
