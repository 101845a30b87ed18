// Passes over kgpu IR. The header of each pass's source shows the IR before and after, and gives measurements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_PASSES_TD
#define KPKG_DIALECT_KGPU_PASSES_TD

include "mlir/Pass/PassBase.td"

class KgpuPass<string name> : Pass<name, "::kpkg::tile::KernelOp"> {
  let dependentDialects = ["::kpkg::kgpu::KgpuDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect"];
}

def KgpuConfigure : KgpuPass<"kgpu-configure"> {
  let summary = "chooses threads, packing, cluster size and residency of a kernel";
  let description = [{
    Sets the launch attributes of a kernel at tile level, and changes nothing else. The launch is number `candidate` of
    the list in launch/Candidates.cpp, which depends on the kernel, its hints and the chip. The pass fails if there is
    no such candidate, or if the kernel has no target. All other kgpu passes need the launch, so this one runs first.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"", "the target, for kernels that have none yet">,
    Option<"candidate", "candidate", "unsigned", "0", "which of the candidates a kernel without a launch gets">
  ];
}

def KgpuScheduleTiles : KgpuPass<"kgpu-schedule-tiles"> {
  let summary = "assigns output tiles to CTAs, in an order that suits the L2 cache";
  let description = [{
    Replaces each tile.for_tiles by a loop of a CTA over its tiles. Kernels with products take tiles in groups of rows.
    Tiles with uneven trip counts are distributed so that all CTAs take equally long. CTAs of a cluster take adjacent
    tiles; the pass fails if no coordinate lets them share operands. It runs before kgpu-merge-loops, and after
    kgpu-im2col-loads, which needs the original loops.
  }];
}

def KgpuMakePersistent : KgpuPass<"kgpu-make-persistent"> {
  let summary = "makes a kernel persistent: each cluster loops over kernel blocks";
  let description = [{
    Wraps the kernel's ops in a loop over the kernel blocks along x, whose step is the number of clusters in the grid.
    Constants stay before the loop. With `early_loads`, so do loads that are the same for all blocks; kgpu-hoist-loads
    must have moved them to the beginning.
  }];
}

def KgpuRingLoads : KgpuPass<"kgpu-ring-loads"> {
  let summary = "fetches loads of a loop several iterations ahead, each thread its own elements";
  let description = [{
    Matches loads of read-only views in the kernel's outermost loops whose addresses depend on the loop's counter.
    Replaces them by `kgpu.fetch`, `stages` iterations ahead, and `kgpu.fetched`. Threads need no barrier, since each
    reads only what it has fetched. The pass applies to kernels with `stages`. It needs layouts, because a thread
    fetches the elements that it holds.
  }];
}

def KgpuIm2colLoads : KgpuPass<"kgpu-im2col-loads"> {
  let summary = "converts gathers over sliding windows into im2col loads of the TMA";
  let description = [{
    Matches gathers that feed a product of warpgroups and move a window over a kernel argument. Replaces them by `kgpu.im2col_load`; other gathers stay. The pass fails if the coordinates of the first row are not
    known. It runs before kgpu-schedule-tiles, because it reads the range of the taps off the loops.
  }];
}

def KgpuMergeLoops : KgpuPass<"kgpu-merge-loops"> {
  let summary = "merges nested loops around a product whose operands are copied ahead";
  let description = [{
    Matches a loop that does nothing but run an inner loop with one product. Replaces both by one loop that carries
    their counters. Bounds of the inner loop must not depend on the outer one. The kernel must have consumer warpgroups,
    or rings and a product of mma.sync that reads gathered rows. The pass runs after kgpu-schedule-tiles, so that one
    ring serves the whole merged loop.
  }];
}

def KgpuTensorStores : KgpuPass<"kgpu-tensor-stores"> {
  let summary = "stores results of products through shared memory by tensor maps";
  let description = [{
    Replaces stores of 16-bit tiles, and additions of f32 tiles to memory, by `kgpu.tensor_store`. The tile must have
    the layout of a wgmma accumulator, or a stored one that of its transpose. A tensor map must be able to describe the
    view. Other stores are not changed. The pass runs before kgpu-specialise-warps, since rings take the shared memory
    that its buffers leave.
  }];
}

def KgpuPlaceScratch : KgpuPass<"kgpu-place-scratch"> {
  let summary = "places the scratch memory of blocks into shared memory";
  let description = [{
    Replaces each tile.scratch by a buffer and a view of it. It runs before passes that create buffers or divide shared
    memory. Only unpacked kernels without roles and clusters have scratch memory.
  }];
}

def KgpuExpandAddStores : KgpuPass<"kgpu-expand-add-stores"> {
  let summary = "expands additions of tiles to memory into atomics, where a tensor map cannot add";
  let description = [{
    Replaces tile.add_store by tile.atomic on the elements. A tile.add_store stays if consumer warpgroups can add the
    tile by a tensor map; kgpu-tensor-stores lowers it later. The pass runs before kgpu-assign-layouts, because the
    index tiles that it creates need layouts.
  }];
}

def KgpuSpecialiseWarps : KgpuPass<"kgpu-specialise-warps"> {
  let summary = "specialises warps: splits a kernel into roles with channels between them";
  let description = [{
    Partitions the ops of a kernel by a graph with costs, and creates `kgpu.roles` with a ring buffer for each channel.
    A producer warp copies operands of products, and consumer warpgroups compute. If the launch has `producers`, a
    producer warpgroup computes left operands of products, and publishes them with other tiles that the consumers need.
    Consumer warpgroups publish tiles of which a product reads the transpose to each other. Every tile.dot becomes a
    `kgpu.wgmma` that is directly followed by its wait.

    A channel has as many slots as shared memory permits. A computed operand with one slot is published in two parts, if
    it has 64 rows of 128 bytes that are computed element by element. Products of the first part then run while the
    second part is computed. A product of an exchanged tile reads the tile of the previous iteration, if there are four
    slots. One store must add its result to memory.

    The pass applies to kernels with `consumers`. It fails if an operand cannot be copied by the TMA, or if rings of two
    slots do not fit. It also fails if a published tile depends on the consumers' results. It runs after layouts are
    assigned, and after passes that match tile.dot.
  }];
  let dependentDialects = ["::kpkg::kgpu::KgpuDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::ub::UBDialect"];
}

def KgpuMulticast : KgpuPass<"kgpu-multicast"> {
  let summary = "multicasts operands that all CTAs of a cluster need";
  let description = [{
    Matches TMA copies whose coordinates do not depend on the rank of the CTA in its cluster. Each CTA then copies a
    part of the box to all CTAs. The pass applies to kernels with roles and clusters, and fails if no copy matches. It
    runs after kgpu-specialise-warps, which creates the copies of whole boxes.
  }];
}

def KgpuPipelineProducts : KgpuPass<"kgpu-pipeline-products"> {
  let summary = "software-pipelines loops with two dependent products";
  let description = [{
    Matches loops with two products, of which the second one's left operand depends on the first. The second product
    moves to the next iteration, where it overlaps with the arithmetic on the first product's result. Loops stay as they
    are if an op may not run one iteration earlier, such as a gather. Short 8-bit products, and right operands that are
    a part of the first product's operand, also prevent it. The pass runs after layouts are assigned and before
    kgpu-specialise-warps, while each product is one tile.dot.
  }];
}

def KgpuPeelLoops : KgpuPass<"kgpu-peel-loops"> {
  let summary = "peels iterations in which a branch may be taken off loops with products";
  let description = [{
    Matches an scf.if between tiles whose condition is a disjunction of comparisons that are linear in the loop counter.
    Splits the loop so that the iterations in which the branch is never taken do not test it. Loops with more than two
    products are not changed, nor are loops whose accumulator starts at zero. The pass removes `peels` from the launch
    if it splits no loop. It runs after kgpu-pipeline-products, which removes first iterations with other products.
  }];
}

def KgpuRescaleConditionally : KgpuPass<"kgpu-rescale-conditionally"> {
  let summary = "lets each warp skip multiplications of accumulators by 1";
  let description = [{
    Matches multiplications of accumulators by a published factor that the producer warpgroup computes by a `select`
    with a branch of 1. They move into an scf.if that a warp enters only if one of its factors is not 1. The pass
    applies to kernels with `producers`, and runs after kgpu-pipeline-waits has placed the waits.
  }];
}

def KgpuSinkScalars : KgpuPass<"kgpu-sink-scalars"> {
  let summary = "moves scalar arithmetic of a tile behind its first product";
  let description = [{
    Matches blocks of the consumers and of the producer warpgroup that start a product before a loop with products.
    Scalar arithmetic that only later ops use moves behind the first product, so that both overlap. The pass runs after
    all passes that move products.
  }];
}

def KgpuPipelineWaits : KgpuPass<"kgpu-pipeline-waits"> {
  let summary = "moves waits for products to the first use of their results";
  let description = [{
    Moves each `kgpu.wgmma_wait`, with the releases of slots behind it, down to the first op that needs its result. The
    wait leaves younger products in flight. It stops before loops, barriers and ops with effects. Waits of a result that
    only the next product adds to are removed, and adjacent waits are merged. On entry every wait must directly follow
    its product.
  }];
}

def KgpuPingPong : KgpuPass<"kgpu-ping-pong"> {
  let summary = "schedules consumer warpgroups in ping-pong";
  let description = [{
    Inserts turns into innermost loops with several products, so that the arithmetic of one warpgroup overlaps with
    products of another. Loops in which warpgroups meet at a barrier are not changed, nor are kernels with one consumer
    or with a producer warpgroup. The pass runs after kgpu-pipeline-waits, because the placed waits determine the
    overlap.
  }];
}

def KgpuDynamicTiles : KgpuPass<"kgpu-dynamic-tiles"> {
  let summary = "replaces the static schedule of tiles by a dynamic tile scheduler";
  let description = [{
    Replaces the loop over tiles of both roles by an scf.while. The producer warp takes tile numbers from an atomic
    counter, and publishes them to the consumers through a channel. The pass fails if a role has no loop over tiles, or
    several. It runs after passes that match loops with known steps.
  }];
}

def KgpuVerifySchedule : KgpuPass<"kgpu-verify-schedule"> {
  let summary = "checks that the roles of a kernel agree on every ring";
  let description = [{
    Checks that roles use rings in one order and equally often, so that they cannot deadlock. Also checks that copies
    fill slots with the announced bytes, and that slots are read only while they are full. The pass changes nothing. It
    can run at any stage after kgpu-specialise-warps.
  }];
}

def KgpuHoistLoads : KgpuPass<"kgpu-hoist-loads"> {
  let summary = "hoists loads of read-only views to the kernel's first load";
  let description = [{
    Moves loads of the kernel's outermost block up to its first load, with the address computations that they need.
    Loads stay if their views are mutable, or if their addresses depend on tiles. The pass applies to kernels with
    `early_loads`, and runs before reductions are expanded.
  }];
}

def KgpuPrefetchLoads : KgpuPass<"kgpu-prefetch-loads"> {
  let summary = "issues loads of a loop one iteration ahead";
  let description = [{
    Matches loads of read-only views whose addresses depend only on the loop's counter and values from outside. The loop
    carries their values. Loops with matrix products are not changed. In kernels with rings, loads that suit a ring stay
    for kgpu-ring-loads. The pass applies to kernels with `prefetch`. It runs before kgpu-assign-layouts, because the
    carried tiles need layouts.
  }];
}

def KgpuAssignLayouts : KgpuPass<"kgpu-assign-layouts"> {
  let summary = "assigns a layout to every tile";
  let description = [{
    Tiles that are loaded or stored get coalesced layouts, and accumulators the layout of their instruction. Layouts are
    propagated along the data flow. A `kgpu.cvt_layout` is inserted where an op needs another layout. The pass fails if
    a thread would hold too many elements of a tile. It needs a configured kernel without layouts.
  }];
}

def KgpuFoldReductions : KgpuPass<"kgpu-fold-reductions"> {
  let summary = "sums a thread's elements before a loop carries them, if they are summed after the loop";
  let description = [{
    Matches a carried sum of floats that starts at zero, to which each iteration adds. All users after the loop must sum
    it over one axis. The loop then carries one element for all registers along that axis. The pass runs after
    kgpu-assign-layouts, which determines the elements of a thread.
  }];
}

def KgpuDeferReductions : KgpuPass<"kgpu-defer-reductions"> {
  let summary = "defers the exchange of a carried sum between lanes until after the loop";
  let description = [{
    Matches a carried sum in a loop with products, to which each iteration adds a reduction. Before that, the sum may be
    multiplied by a factor for each row. The loop then carries an element for each lane, and one reduction follows the
    loop. The pass runs after kgpu-assign-layouts and before kgpu-pipeline-products, which changes the loops.
  }];
}

def KgpuRematerialiseLoads : KgpuPass<"kgpu-rematerialise-loads"> {
  let summary = "reads fetched elements again after a wait, if registers cannot hold them meanwhile";
  let description = [{
    Matches loops with `kgpu.fetched` and carried tiles, whose values exceed a thread's registers over the last
    reduction across warps. After that reduction, the thread reads its elements again and repeats the computation on
    them. If that is not enough, tiles from before the loop are read from shared memory likewise. The pass runs before
    kgpu-expand-reductions and after kgpu-group-reductions, which determines the last wait.
  }];
}

def KgpuExpandScans : KgpuPass<"kgpu-expand-scans"> {
  let summary = "expands long scans: warps scan parts, and then all scan the totals of the parts";
  let description = [{
    Matches scans whose axis several CTAs share, or for which a warp would need many registers. Replaces them by two
    `kgpu.partial_scan` with an exchange of totals, and a `kgpu.put_before`. Scans whose axis does not divide into parts
    of equal length stay for kgpu-localise-scans. The pass needs layouts.
  }];
}

def KgpuLocaliseScans : KgpuPass<"kgpu-localise-scans"> {
  let summary = "converts scans so that their axis lies within a warp";
  let description = [{
    Matches scans along an axis that several warps share, and inserts layout conversions around them. The pass fails if
    CTAs of a cluster share the axis, or if a thread would hold too many elements. It runs after kgpu-expand-scans,
    which expands long scans.
  }];
}

def KgpuExpandArgReduce : KgpuPass<"kgpu-expand-arg-reduce"> {
  let summary = "expands positions of extremes into reductions of pairs";
  let description = [{
    Replaces every tile.arg_reduce by a tile.combine over pairs of element and position. Of equal elements the smaller
    position wins, and a NaN precedes every number. The pass runs before kgpu-assign-layouts, because the tiles of
    positions need layouts.
  }];
}

def KgpuCoalesceStores : KgpuPass<"kgpu-coalesce-stores"> {
  let summary = "converts results of products to layouts in which threads store whole vectors";
  let description = [{
    Matches stores of mma.sync accumulators, or of transposed bytes, whose view allows vectors at least twice as long.
    Inserts the cheaper of two conversions: to a layout that shuffles within groups of lanes produce, or to the
    coalesced one. In kernels with a producer warpgroup, 16-bit wgmma results are shuffled to whole sectors instead.
    The pass needs layouts, and runs before kgpu-expand-cvt.
  }];
}

def KgpuExpandMma : KgpuPass<"kgpu-expand-mma"> {
  let summary = "expands matrix products into mma.sync, with operands in shared memory";
  let description = [{
    Matches tile.dot that tensor cores can compute a warp at a time (see dotKind). Stores operands to buffers, and reads
    them as fragments step by step along K. Other products stay for kgpu-expand-dots. The pass needs layouts. Barriers
    are inserted by kgpu-insert-barriers.
  }];
}

def KgpuRingCopies : KgpuPass<"kgpu-ring-copies"> {
  let summary = "copies loads for shared memory several iterations ahead, through a ring buffer";
  let description = [{
    Matches loads and gathers of rows in a loop that are only stored to a buffer. Their addresses must depend only on
    the loop's counter and carried counters. Replaces them by asynchronous copies to a ring of `stages` slots, with
    one barrier per iteration. Loads that cannot be copied asynchronously go through registers. The pass applies to
    kernels with two or more stages, and runs after kgpu-expand-mma, which creates the buffers.
  }];
}

def KgpuPreloadFragments : KgpuPass<"kgpu-preload-fragments"> {
  let summary = "reads the first fragments of an iteration at the end of the previous one";
  let description = [{
    Matches loops of kgpu-ring-copies with a `kgpu.mma` whose first operands are read from the ring's slot. The loop
    carries the first fragments, and the wait for the next slot moves before the last product. Other loops are not
    changed.
  }];
}

def KgpuExpandDots : KgpuPass<"kgpu-expand-dots"> {
  let summary = "expands matrix products into FMAs, with operands in shared memory";
  let description = [{
    Replaces every remaining tile.dot by a loop along K. Each step reads a column and a row from shared memory, and adds
    their product to the accumulator. Operands are widened to the accumulator's type first. The pass runs after
    kgpu-expand-mma. Barriers are inserted by kgpu-insert-barriers.
  }];
  let dependentDialects = ["::kpkg::kgpu::KgpuDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def KgpuMergeReductions : KgpuPass<"kgpu-merge-reductions"> {
  let summary = "merges dependent reductions across warps into one exchange, by Chan's update";
  let description = [{
    Matches a sum of squares about a value that depends on the elements' sum, and a sum of exponentials about their
    maximum. Both reductions are computed within warps, and share one `kgpu.share_parts`. Pairs stay as they are where
    the saved exchange does not pay for the additional arithmetic. The pass needs layouts, and runs before
    kgpu-expand-reductions.
  }];
  let dependentDialects = ["::kpkg::kgpu::KgpuDialect", "::mlir::scf::SCFDialect", "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def KgpuGroupReductions : KgpuPass<"kgpu-group-reductions"> {
  let summary = "moves independent reductions across warps next to each other";
  let description = [{
    Moves each reduction up to an earlier one in its block, with the ops that it needs. It stays if one of them has
    effects or is a reduction itself. The pass runs before kgpu-expand-reductions, which lets adjacent reductions share
    an exchange.
  }];
}

def KgpuExpandReductions : KgpuPass<"kgpu-expand-reductions"> {
  let summary = "expands reductions across warps into partial ones and an exchange through shared memory";
  let description = [{
    Matches tile.reduce and tile.combine along an axis that several warps hold, and `kgpu.share_parts`. Each warp
    reduces its part, and every warp reduces the exchanged parts again. CTAs of a cluster exchange parts by
    `kgpu.exchange`, or by `kgpu.remote_store` deeper in the control flow. The pass fails if a layout cannot be divided
    among warps. Barriers are inserted by kgpu-insert-barriers.
  }];
}

def KgpuExpandCvt : KgpuPass<"kgpu-expand-cvt"> {
  let summary = "expands layout conversions between warps into an exchange through shared memory";
  let description = [{
    Matches `kgpu.cvt_layout` that shuffles cannot do, or do more slowly, and tile.reshape that moves elements. Replaces
    them by a store to a buffer and a load. Some conversions of kernels with roles always use shuffles, because rings
    leave no memory. The pass fails in packed kernels if elements would move between blocks. It runs after all passes
    that create conversions.
  }];
}

def KgpuAllocSmem : KgpuPass<"kgpu-alloc-smem"> {
  let summary = "assigns an offset in shared memory to every buffer";
  let description = [{
    Buffers that are not live at the same time may overlap. The pass sets `offset` of every `kgpu.alloc`, and
    `shared` of the kernel. It fails if the chip has too little shared memory for a CTA. It runs after all passes
    that create buffers.
  }];
}

def KgpuInsertBarriers : KgpuPass<"kgpu-insert-barriers"> {
  let summary = "inserts barriers between conflicting accesses to shared memory";
  let description = [{
    Inserts a barrier on every path between two accesses of different threads to the same byte, one of them a write.
    Buffers must have offsets, so the pass runs after kgpu-alloc-smem. It also lets the cluster wait before the first
    write to another CTA's shared memory.
  }];
}

def KgpuVerify : KgpuPass<"kgpu-verify"> {
  let summary = "checks layouts against each other, and the launch against the chip";
  let description = [{
    Checks that every tile has a layout that suits its op and the launch, and that buffers fit shared memory. Also
    checks that ops of a role stand in its region, and that CTAs of a cluster agree on their exchanges. The pass changes
    nothing. It can run at any stage after kgpu-assign-layouts.
  }];
}

#endif
