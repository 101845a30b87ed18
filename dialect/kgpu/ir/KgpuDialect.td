// The kgpu dialect: where and when a GPU computes what a tile kernel says.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_IR_KGPUDIALECT_TD
#define KPKG_DIALECT_KGPU_IR_KGPUDIALECT_TD

include "mlir/IR/OpBase.td"

def Kgpu_Dialect : Dialect {
  let name = "kgpu";
  let cppNamespace = "::kpkg::kgpu";
  let summary = "Layouts, shared memory and synchronisation of a tile kernel on a GPU";
  let description = [{
    The container stays `tile.kernel`; it carries its target and its launch as attributes:

    * `kgpu.target = #kgpu.target<"sm_90a">`: the chip.
    * `kgpu.threads`: threads of a CTA (i32).
    * `kgpu.blocks`: kernel blocks that a CTA runs side by side along x (i32, absent = 1; "packing"). Each block then has
      threads/blocks lanes of one warp, and `tile.block_id x` is CTA * blocks + thread / (threads/blocks); what a block at or
      beyond `tile.grid_dim x` reads or writes is left out.
    * `kgpu.cluster`: CTAs that run one kernel block together (i32, absent = 1); `tile.block_id x` is CTA / cluster.
      With `kgpu.consumers`, CTAs that compute a tile each, and copy operands for each other: `kgpu-multicast`.
    * `kgpu.min_ctas`: CTAs that shall fit an SM, which bounds registers (i32, absent = no demand).
    * `kgpu.persistent`: the grid of CTAs is as large as the machine, whatever the work.
    * `kgpu.early_loads`: what all kernel blocks read is loaded before threads wait for each other.
    * `kgpu.prefetch`: loops load what their next iteration needs.
    * `kgpu.overlaps`: the kernel starts while the one in front of it ends, and waits for that before it touches memory.
    * `kgpu.peels`: iterations of loops with products in which a choice is not made have a loop of their own: `kgpu-peel-loops`.
    * `kgpu.dynamic`: beside `kgpu.consumers`, CTAs take tiles of `tile.for_tiles` from a counter as they become free: `kgpu-dynamic-tiles`.
    * `kgpu.consumers`: warpgroups that run the `consumers` part of `kgpu.roles` (i32, absent = the kernel has no roles). One more warpgroup loads, by one of its threads.
    * `kgpu.producers`: beside `kgpu.consumers`, warpgroups that run the `producers` part of `kgpu.roles` (i32, absent = there is no such part): `kgpu-split-producers`.
    * `kgpu.load_registers`: beside `kgpu.consumers`, registers of a thread of the producer warpgroup (i32, absent = chosen by its code).
    * `kgpu.stages`: iterations of a loop whose operands are in shared memory at once (i32, absent = one, without a ring).
    * `kgpu.shared`: bytes of shared memory (i32), once `kgpu-alloc-smem` ran.
    * `kgpu.tensor_maps`: array of `#kgpu.tensor_map`, each a parameter that the runtime makes for a launch.

    Every tile has a layout as its encoding. Ops of tile, arith, math and scf keep their meaning; operands and results of an
    elementwise op have one layout, and for the others the layouts are tied to each other as `kgpu-verify` says.
  }];
  let dependentDialects = ["::kpkg::tile::TileDialect", "::mlir::scf::SCFDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif
