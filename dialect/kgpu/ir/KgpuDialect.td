// The kgpu dialect: layouts of tiles, shared memory, synchronisation and warp roles of a kernel on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_KGPU_IR_KGPUDIALECT_TD
#define KPKG_DIALECT_KGPU_IR_KGPUDIALECT_TD

include "mlir/IR/OpBase.td"

def Kgpu_Dialect : Dialect {
  let name = "kgpu";
  let cppNamespace = "::kpkg::kgpu";
  let summary = "Layouts, shared memory and synchronisation of a tile kernel on a GPU";
  let description = [{
    The container is `tile.kernel`. It carries its target and its launch configuration as attributes:

    * `kgpu.target = #kgpu.target<"sm_90a">`: the chip.
    * `kgpu.threads`: threads per CTA (i32).
    * `kgpu.blocks`: kernel blocks that a CTA runs concurrently along x (i32, absent = 1; "packing"). Each block has
      threads/blocks lanes of one warp. `tile.block_id x` is CTA * blocks + thread / (threads/blocks). Blocks at or
      beyond `tile.grid_dim x` read and write nothing.
    * `kgpu.cluster`: CTAs that run one kernel block together (i32, absent = 1); `tile.block_id x` is CTA / cluster.
      With `kgpu.consumers`, CTAs that compute a tile each and multicast operands: `kgpu-multicast`.
    * `kgpu.min_ctas`: CTAs that must fit an SM, which bounds registers (i32, absent = no requirement).
    * `kgpu.persistent`: a persistent kernel, whose grid has as many CTAs as the machine runs at once.
    * `kgpu.early_loads`: data that all kernel blocks read is loaded before threads wait for each other.
    * `kgpu.prefetch`: loops load data of their next iteration.
    * `kgpu.overlaps`: the kernel starts while the preceding kernel ends, and waits for its end before memory accesses.
    * `kgpu.peels`: iterations of loops with products in which a branch is never taken have a loop of their own:
      `kgpu-peel-loops`.
    * `kgpu.dynamic`: with `kgpu.consumers`, CTAs take tiles of `tile.for_tiles` from a dynamic tile scheduler:
      `kgpu-dynamic-tiles`.
    * `kgpu.consumers`: warpgroups that run the `consumers` region of `kgpu.roles` (i32, absent = the kernel has no
      roles). One more warpgroup contains the producer warp, of which one thread loads.
    * `kgpu.producers`: with `kgpu.consumers`, warpgroups that run the `producers` region of `kgpu.roles` (i32, absent =
      no such region): `kgpu-split-producers`.
    * `kgpu.load_registers`: with `kgpu.consumers`, registers per thread of the warpgroup with the producer warp (i32,
      absent = chosen by its code).
    * `kgpu.stages`: iterations of a loop whose operands are in shared memory at once (i32, absent = one, without a ring).
    * `kgpu.shared`: bytes of shared memory (i32), set by `kgpu-alloc-smem`.
    * `kgpu.tensor_maps`: array of `#kgpu.tensor_map`, each a parameter that the runtime creates for a launch.

    Every tile has a layout as its encoding. Ops of tile, arith, math and scf keep their semantics. Operands and results
    of an elementwise op have one layout. For other ops, `kgpu-verify` defines how the layouts depend on each other.
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
