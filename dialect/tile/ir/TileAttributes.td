// Attributes of the tile dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_TILE_IR_TILEATTRIBUTES_TD
#define KPKG_DIALECT_TILE_IR_TILEATTRIBUTES_TD

include "dialect/tile/ir/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Tile_ScheduleAttr : AttrDef<Tile_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "the hints that a kernel's author gives with `@schedule`";
  let description = [{
    Names and values are those of dialect/tile/schedule/Hints.def. A hint without a value leaves the choice to the
    compiler. Hints never change results.

    Example: `#tile.schedule<warps = 4, occupancy = 2>`.
  }];
  let parameters = (ins AttrParameter<"::kpkg::tile::Schedule", "the hints">:$hints);
  let hasCustomAssemblyFormat = 1;
}

#endif
