// Defines the base class and enums of the tile ops. Each family of ops has its own file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_TILE_IR_TILEOPS_TD
#define KPKG_DIALECT_TILE_IR_TILEOPS_TD

include "dialect/tile/ir/TileAttributes.td"
include "dialect/tile/ir/TileTypes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/LoopLikeInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits>;

class Tile_Enum<string name, string summary, list<I32EnumAttrCase> cases> : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::kpkg::tile";
}

def Tile_GridAxis : Tile_Enum<"GridAxis", "axis of the grid of blocks", [
  I32EnumAttrCase<"x", 0>, I32EnumAttrCase<"y", 1>, I32EnumAttrCase<"z", 2>
]>;

def Tile_ReduceKind : Tile_Enum<"ReduceKind", "how elements are reduced", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Prod", 1, "prod">,
  I32EnumAttrCase<"Max", 2, "max">, I32EnumAttrCase<"Min", 3, "min">,
  I32EnumAttrCase<"UMax", 4, "umax">, I32EnumAttrCase<"UMin", 5, "umin">,
  I32EnumAttrCase<"And", 6, "and">, I32EnumAttrCase<"Or", 7, "or">
]>;

def Tile_ArgReduceKind : Tile_Enum<"ArgReduceKind", "which extreme is looked for", [
  I32EnumAttrCase<"Max", 0, "max">, I32EnumAttrCase<"Min", 1, "min">,
  I32EnumAttrCase<"UMax", 2, "umax">, I32EnumAttrCase<"UMin", 3, "umin">
]>;

def Tile_AtomicKind : Tile_Enum<"AtomicKind", "what an atomic update makes of the old and the new value", [
  I32EnumAttrCase<"Add", 0, "add">, I32EnumAttrCase<"Max", 1, "max">, I32EnumAttrCase<"Min", 2, "min">,
  I32EnumAttrCase<"UMax", 3, "umax">, I32EnumAttrCase<"UMin", 4, "umin">,
  I32EnumAttrCase<"Exchange", 5, "exchange">, I32EnumAttrCase<"CompareExchange", 6, "compare_exchange">
]>;

def Tile_DotPrecision : Tile_Enum<"DotPrecision", "how f32 operands of a dot are read", [
  I32EnumAttrCase<"IEEE", 0, "ieee">, I32EnumAttrCase<"TF32", 1, "tf32">
]>;

include "dialect/tile/ir/KernelOps.td"
include "dialect/tile/ir/MemoryOps.td"
include "dialect/tile/ir/ShapeOps.td"
include "dialect/tile/ir/ReduceOps.td"

#endif
