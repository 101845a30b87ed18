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
    The container is `tile.kernel`. Three attributes say how it runs:

    * `kgpu.target = #kgpu.target<"sm_90a">`: the chip.
    * `kgpu.launch = #kgpu.launch<threads = 128>`: the launch. LaunchFields.def lists its fields.
    * `kgpu.tensor_maps`: an array of `#kgpu.tensor_map`. The runtime creates each of these parameters for a launch.

    With `blocks`, a CTA runs several kernel blocks concurrently along x (packing). Each has threads/blocks lanes of one
    warp, and `tile.block_id x` is CTA * blocks + thread / (threads/blocks). Blocks at or beyond `tile.grid_dim x` read
    and write nothing. With `cluster`, `tile.block_id x` is CTA / cluster. With `consumers`, one more warpgroup contains
    the producer warp, of which one thread loads.

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
