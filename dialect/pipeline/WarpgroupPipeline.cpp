// The pipeline of warp-specialised kernels: a producer warp copies operands, warpgroups multiply them by wgmma.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/Passes.h"
#include "dialect/pipeline/Phases.h"

namespace kpkg {

void addWarpgroupPasses(mlir::OpPassManager &passes, const kgpu::Launch &launch) {
  // Launched: loops over tiles become scf loops, and gathers of windows become copies of the TMA.
  passes.addPass(kgpu::createKgpuExpandAddStores()); // creates index tiles, which need layouts
  passes.addPass(kgpu::createKgpuIm2colLoads());     // while loop bounds give the range of taps
  passes.addPass(kgpu::createKgpuScheduleTiles());   // leaves only scf loops for later passes
  passes.addPass(kgpu::createKgpuMergeLoops());      // so that one ring serves the merged loop

  // Laid out: every tile has a layout, accumulators that of wgmma.
  addLayouts(passes);
  passes.addPass(kgpu::createKgpuDeferReductions()); // before loops with products are software-pipelined
  passes.addPass(kgpu::createKgpuTensorStores());    // takes its shared memory before rings share the rest

  // Pipelined: products of one iteration overlap with the arithmetic of another.
  passes.addPass(kgpu::createKgpuPipelineProducts()); // while each product is one tile.dot
  if (launch.peels)
    passes.addPass(kgpu::createKgpuPeelLoops()); // after pipelining has peeled iterations with other products

  // Roles: producer and consumers have regions of their own, connected by ring buffers.
  passes.addPass(kgpu::createKgpuSpecialiseWarps()); // needs the layouts of accumulators, and each tile.dot
  if (launch.cluster > 1)
    passes.addPass(kgpu::createKgpuMulticast());   // needs the copies, while they are whole
  passes.addPass(kgpu::createKgpuPipelineWaits()); // before ops behind the waits are expanded
  passes.addPass(kgpu::createKgpuPingPong());      // needs final waits, which determine the overlap
  if (launch.producers != 0)
    passes.addPass(kgpu::createKgpuRescaleConditionally()); // after passes that match scalings of accumulators
  if (launch.dynamic)
    passes.addPass(kgpu::createKgpuDynamicTiles()); // replaces loops with known steps, which passes above match
  passes.addPass(kgpu::createKgpuVerifySchedule()); // finds races and deadlocks, which tests rarely show

  // Expanded: no op needs more than one warp but through shared memory.
  passes.addPass(kgpu::createKgpuSinkScalars());   // needs to know which product comes first
  passes.addPass(kgpu::createKgpuExpandScans());   // creates buffers
  passes.addPass(kgpu::createKgpuLocaliseScans()); // creates conversions
  if (launch.producers != 0)
    passes.addPass(kgpu::createKgpuCoalesceStores()); // while accumulators have their instructions' layouts
  passes.addPass(kgpu::createKgpuMergeReductions());  // before expansion, so that merged reductions share an exchange
  passes.addPass(kgpu::createKgpuGroupReductions());  // before expansion, so that adjacent reductions share a barrier
  addExpansion(passes);

  addAllocation(passes);
}

} // namespace kpkg
