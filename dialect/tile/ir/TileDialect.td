// Defines the tile dialect: the computation of a kernel on tiles of memory, independent of targets.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_TILE_IR_TILEDIALECT_TD
#define KPKG_DIALECT_TILE_IR_TILEDIALECT_TD

include "mlir/IR/OpBase.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::kpkg::tile";
  let summary = "Describes the computation of a kernel on tiles of static shape, without threads, layouts or targets";
  let description = [{
    A `tile.kernel` runs once per block of a grid. It accesses memory only through `!tile.view` arguments. It reads
    tiles, which are builtin tensors of static shape, computes with `arith`, `math`, `scf` and the ops below, and writes
    tiles back.

    These rules hold for every op:
    * Values are ranked tensors of static shape with rank >= 1, scalars, and views. Tiles have no encoding; at the kgpu
      level the encoding is their layout.
    * Integers are signless, and the op determines their interpretation. Index arithmetic wraps at 64 bits.
    * Accesses stay inside views: elements outside a view read as a fill value and are not written.
    * Floating point follows IEEE 754, with rounding to nearest even. An op on f16, bf16 or f8 returns the exact result
      rounded once to its type, or the f32 result rounded to its type. The two agree for one `+ - * / sqrt`.
    * Blocks run in any order and concurrently. Views that are `mut` alias no other view.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    void registerAttributes();
    void registerTypes();
  }];
}

#endif
