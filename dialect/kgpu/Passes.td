// Passes over the kgpu level; each file's head shows the IR before and after.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_PASSES_TD
#define KPKG_DIALECT_KGPU_PASSES_TD

include "mlir/Pass/PassBase.td"

class KgpuPass<string name> : Pass<name, "::kpkg::tile::KernelOp"> {
  let dependentDialects = ["::kpkg::kgpu::KgpuDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def KgpuConfigure : KgpuPass<"kgpu-configure"> {
  let summary = "chooses threads, packing, cluster and residency of a kernel";
  let options = [
    Option<"chip", "chip", "std::string", "\"\"", "the target, for kernels that have none yet">,
    Option<"candidate", "candidate", "unsigned", "0", "which of the kernel's candidates to take">
  ];
}

def KgpuScheduleTiles : KgpuPass<"kgpu-schedule-tiles"> {
  let summary = "says which CTA makes which tiles of an output, and in which order";
}

def KgpuMakePersistent : KgpuPass<"kgpu-make-persistent"> {
  let summary = "lets as many clusters as fit the machine go over all kernel blocks, in kernels whose launch asks for it";
}

def KgpuRingLoads : KgpuPass<"kgpu-ring-loads"> {
  let summary = "fetches what later iterations load, in kernels whose launch asks for it";
}

def KgpuIm2colLoads : KgpuPass<"kgpu-im2col-loads"> {
  let summary = "turns gathers by windows into loads that the copy engine does";
}

def KgpuMergeLoops : KgpuPass<"kgpu-merge-loops"> {
  let summary = "makes one loop of nested ones around products whose operands are copied ahead";
}

def KgpuTensorStores : KgpuPass<"kgpu-tensor-stores"> {
  let summary = "writes results of products by tensor maps";
}

def KgpuExpandAddStores : KgpuPass<"kgpu-expand-add-stores"> {
  let summary = "adds tiles to memory element by element where tensor maps cannot";
}

def KgpuDensifyDots : KgpuPass<"kgpu-densify-dots"> {
  let summary = "makes dense what products have two of four elements of, where tensor cores cannot multiply those";
}

def KgpuSplitRoles : KgpuPass<"kgpu-split-roles"> {
  let summary = "splits a kernel into a thread that copies operands of products and warpgroups that compute";
  let dependentDialects = ["::kpkg::kgpu::KgpuDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def KgpuSplitProducers : KgpuPass<"kgpu-split-producers"> {
  let summary = "gives what products of a computed left operand are made from to a warpgroup of its own";
}

def KgpuMulticast : KgpuPass<"kgpu-multicast"> {
  let summary = "lets the CTAs of a cluster copy operands for each other that all of them need";
}

def KgpuPipelineProducts : KgpuPass<"kgpu-pipeline-products"> {
  let summary = "lets the second product of an iteration run under the arithmetic of the next one";
}

def KgpuPeelLoops : KgpuPass<"kgpu-peel-loops"> {
  let summary = "gives iterations in which a choice is never made a loop of their own";
}

def KgpuPublishParts : KgpuPass<"kgpu-publish-parts"> {
  let summary = "hands operands on in two parts, the first one while the other is computed";
}

def KgpuRescaleConditionally : KgpuPass<"kgpu-rescale-conditionally"> {
  let summary = "lets warps skip multiplications of sums by 1";
}

def KgpuSinkScalars : KgpuPass<"kgpu-sink-scalars"> {
  let summary = "computes scalars of a tile under its first product";
}

def KgpuPipelineOperands : KgpuPass<"kgpu-pipeline-operands"> {
  let summary = "lets products of what warpgroups share run one iteration later";
  let dependentDialects = ["::kpkg::kgpu::KgpuDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def KgpuPipelineWaits : KgpuPass<"kgpu-pipeline-waits"> {
  let summary = "waits for products where their results are needed";
}

def KgpuPingPong : KgpuPass<"kgpu-ping-pong"> {
  let summary = "lets warpgroups start their products in turn";
}

def KgpuDynamicTiles : KgpuPass<"kgpu-dynamic-tiles"> {
  let summary = "lets CTAs take the next tile when they are free, in kernels whose launch asks for it";
}

def KgpuVerifySchedule : KgpuPass<"kgpu-verify-schedule"> {
  let summary = "checks that the roles of a kernel agree on every ring";
}

def KgpuHoistLoads : KgpuPass<"kgpu-hoist-loads"> {
  let summary = "moves loads to the first one, in kernels whose launch asks for it";
}

def KgpuPrefetchLoads : KgpuPass<"kgpu-prefetch-loads"> {
  let summary = "loads one iteration ahead, in kernels whose launch asks for it";
}

def KgpuAssignLayouts : KgpuPass<"kgpu-assign-layouts"> {
  let summary = "gives every tile a layout";
}

def KgpuFoldReductions : KgpuPass<"kgpu-fold-reductions"> {
  let summary = "adds up in a thread before a loop carries it what the thread adds up in the end";
}

def KgpuDeferReductions : KgpuPass<"kgpu-defer-reductions"> {
  let summary = "exchanges sums over lanes that a loop carries once, behind the loop";
}

def KgpuRematerialiseLoads : KgpuPass<"kgpu-rematerialise-loads"> {
  let summary = "reads again what was fetched where registers cannot hold it while threads wait";
}

def KgpuExpandScans : KgpuPass<"kgpu-expand-scans"> {
  let summary = "lets warps and CTAs share long scans";
}

def KgpuLocaliseScans : KgpuPass<"kgpu-localise-scans"> {
  let summary = "brings the axis of every scan into a warp";
}

def KgpuExpandArgReduce : KgpuPass<"kgpu-expand-arg-reduce"> {
  let summary = "turns positions of extremes into reductions of pairs";
}

def KgpuCoalesceStores : KgpuPass<"kgpu-coalesce-stores"> {
  let summary = "results of matrix products are stored in whole vectors";
}

def KgpuExpandMma : KgpuPass<"kgpu-expand-mma"> {
  let summary = "turns matrix products into mma.sync on operands in shared memory";
}

def KgpuRingCopies : KgpuPass<"kgpu-ring-copies"> {
  let summary = "copies to shared memory run several iterations ahead, through a ring";
}

def KgpuPreloadFragments : KgpuPass<"kgpu-preload-fragments"> {
  let summary = "reads the first fragments of an iteration at the end of the one before";
}

def KgpuExpandDots : KgpuPass<"kgpu-expand-dots"> {
  let summary = "turns matrix products into multiply-adds on operands in shared memory";
  let dependentDialects = ["::kpkg::kgpu::KgpuDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def KgpuMergeReductions : KgpuPass<"kgpu-merge-reductions"> {
  let summary = "a sum about the result of another reduction is made about that of each warp, so that both share an exchange";
  let dependentDialects = ["::kpkg::kgpu::KgpuDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def KgpuGroupReductions : KgpuPass<"kgpu-group-reductions"> {
  let summary = "puts independent reductions across warps side by side";
}

def KgpuExpandReductions : KgpuPass<"kgpu-expand-reductions"> {
  let summary = "turns reductions across warps into partial ones and an exchange through shared memory";
}

def KgpuExpandCvt : KgpuPass<"kgpu-expand-cvt"> {
  let summary = "turns conversions between warps into an exchange through shared memory";
}

def KgpuAllocSmem : KgpuPass<"kgpu-alloc-smem"> {
  let summary = "gives every buffer in shared memory its offset";
}

def KgpuInsertBarriers : KgpuPass<"kgpu-insert-barriers"> {
  let summary = "separates conflicting accesses to shared memory by barriers";
}

def KgpuVerify : KgpuPass<"kgpu-verify"> {
  let summary = "checks layouts against each other, and the launch against the chip";
}

#endif
