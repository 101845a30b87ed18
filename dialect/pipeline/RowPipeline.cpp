// The pipeline of kernels without matrix products: rows, reductions, scans, elementwise ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/Passes.h"
#include "dialect/pipeline/Phases.h"
#include "dialect/tile/transforms/Passes.h"

namespace kpkg {

void addRowPasses(mlir::OpPassManager &passes, const kgpu::Launch &launch) {
  // Launched: loops over tiles become scf loops, and loads move to the place where they are issued.
  passes.addPass(tile::createTileExpandAddStores()); // creates index tiles, which need layouts
  passes.addPass(kgpu::createKgpuScheduleTiles());   // leaves only scf loops for later passes
  if (launch.earlyLoads)
    passes.addPass(kgpu::createKgpuHoistLoads()); // before reductions are expanded to code that loads cannot pass
  if (launch.persistent)
    passes.addPass(kgpu::createKgpuMakePersistent()); // after loads that all blocks repeat are hoisted to the beginning
  if (launch.prefetch)
    passes.addPass(kgpu::createKgpuPrefetchLoads()); // creates carried tiles, which need layouts

  // Laid out: every tile has a layout.
  addLayouts(passes);

  // Pipelined: loads of later iterations are in flight.
  if (launch.stages != 0)
    passes.addPass(kgpu::createKgpuRingLoads()); // each thread fetches the elements of its layout

  // Expanded: no op needs more than one warp but through shared memory.
  passes.addPass(kgpu::createKgpuExpandScans());        // creates buffers
  passes.addPass(kgpu::createKgpuLocaliseScans());      // creates conversions
  passes.addPass(kgpu::createKgpuCoalesceStores());     // while transposed loads have their layouts
  passes.addPass(kgpu::createKgpuMergeReductions());    // before expansion, so that merged reductions share an exchange
  passes.addPass(kgpu::createKgpuGroupReductions());    // before expansion, so that adjacent reductions share a barrier
  passes.addPass(kgpu::createKgpuRematerialiseLoads()); // needs to know the last wait of an iteration
  addExpansion(passes);

  addAllocation(passes);
}

} // namespace kpkg
