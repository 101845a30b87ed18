// The pipeline of kernels whose warps compute matrix products by mma.sync, or threads by FMAs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/Passes.h"
#include "dialect/pipeline/Phases.h"
#include "dialect/tile/transforms/Passes.h"

namespace kpkg {

void addMmaPasses(mlir::OpPassManager &passes, const kgpu::Launch &launch) {
  // Launched: loops over tiles become scf loops, and loads move to the place where they are issued.
  passes.addPass(tile::createTileExpandAddStores()); // creates index tiles, which need layouts
  passes.addPass(tile::createTileDensifyDots());     // creates tiles, which need layouts
  passes.addPass(kgpu::createKgpuScheduleTiles());   // leaves only scf loops for later passes
  if (launch.stages >= 2)
    passes.addPass(kgpu::createKgpuMergeLoops()); // so that one ring serves the merged loop
  if (launch.earlyLoads)
    passes.addPass(kgpu::createKgpuHoistLoads()); // before reductions are expanded to code that loads cannot pass
  if (launch.persistent)
    passes.addPass(kgpu::createKgpuMakePersistent()); // after loads that all blocks repeat are hoisted to the beginning
  if (launch.prefetch)
    passes.addPass(kgpu::createKgpuPrefetchLoads()); // creates carried tiles, which need layouts

  // Laid out: every tile has a layout.
  addLayouts(passes);
  passes.addPass(kgpu::createKgpuDeferReductions()); // before loops with products are changed

  // Expanded: products are instructions of warps, their operands are in shared memory.
  passes.addPass(kgpu::createKgpuExpandScans());    // creates buffers
  passes.addPass(kgpu::createKgpuLocaliseScans());  // creates conversions
  passes.addPass(kgpu::createKgpuCoalesceStores()); // while accumulators have their instructions' layouts
  passes.addPass(kgpu::createKgpuExpandMma());      // creates buffers

  // Pipelined: copies of later iterations are in flight, and fragments of the next step are loaded early.
  if (launch.stages >= 2) {
    passes.addPass(kgpu::createKgpuRingCopies());       // turns buffers in loops into rings
    passes.addPass(kgpu::createKgpuPreloadFragments()); // needs waits and barriers of the rings
  }
  passes.addPass(kgpu::createKgpuExpandDots()); // creates buffers that stay within an iteration

  passes.addPass(kgpu::createKgpuMergeReductions()); // before expansion, so that merged reductions share an exchange
  passes.addPass(kgpu::createKgpuGroupReductions()); // before expansion, so that adjacent reductions share a barrier
  addExpansion(passes);

  addAllocation(passes);
}

} // namespace kpkg
