// The tile dialect: what a kernel computes on tiles of memory, without any target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_TILE_IR_TILEDIALECT_TD
#define KPKG_DIALECT_TILE_IR_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::kpkg::tile";
  let summary = "What a kernel computes, on tiles of static shape; no threads, no layouts, no target";
  let description = [{
    A `tile.kernel` is run once per block of a grid. It sees memory through `!tile.view` arguments only, reads tiles from it
    (builtin tensors of static shape), computes with `arith`, `math`, `scf` and the ops below, and writes tiles back.

    Rules that hold for every op:
    * Values are ranked tensors of static shape with rank >= 1, scalars, and views. Tiles have no encoding; at the kgpu level it is their layout.
    * Integers are signless; the op says how they are read. Index arithmetic wraps at 64 bits.
    * No access leaves memory: elements outside a view read as a fill value and are not written.
    * Floating point follows IEEE 754, round to nearest even. An op on f16, bf16 or f8 gives the exact result rounded once to its
      type, or the f32 result rounded to its type, which agree for one `+ - * / sqrt`.
    * Blocks run in any order and at the same time; views that are `mut` alias no other view.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    void registerTypes();
  }];
}

#endif
