// Defines the types of the tile dialect, and the constraints of its ops on values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_TILE_IR_TILETYPES_TD
#define KPKG_DIALECT_TILE_IR_TILETYPES_TD

include "dialect/tile/ir/TileDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def Tile_ViewType : TypeDef<Tile_Dialect, "View"> {
  let mnemonic = "view";
  let summary = "a view of memory with run-time shape and strides";
  let description = [{
    A view has `rank` extents and as many strides, both known at run time. Strides count elements and may be 0 or
    negative. A view is read-only unless it is `mut`. The other parameters are facts on which code for this type may
    rely:

    * `unit = d`: the stride of dimension `d` is 1.
    * `align = n`: the address of the first element is a multiple of `n` bytes.
    * `divisible = n`: the extent of the unit dimension and the strides of all others are multiples of `n` elements.
    * `index = 32`: extents and all element offsets (sums of coordinate times stride) fit a signed 32-bit integer.
    * `outer = n`: `index` does not cover offsets along the first `n` dimensions, which may be far apart. Offsets along
      the other dimensions fit.

    Examples: `!tile.view<2xbf16>`, `!tile.view<3xf32, mut>`, `!tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>`.
  }];
  let parameters = (ins
    "int64_t":$rank,
    "::mlir::Type":$elementType,
    "bool":$isMut,
    "ViewFacts":$facts
  );
  let builders = [
    TypeBuilderWithInferredContext<(ins "int64_t":$rank, "::mlir::Type":$elementType, CArg<"bool", "false">:$isMut,
                                        CArg<"ViewFacts", "{}">:$facts), [{
      return $_get(elementType.getContext(), rank, elementType, isMut, facts);
    }]>
  ];
  let extraClassDeclaration = [{
    /// Returns the type of this view after the dimensions `dims` (ascending) have been indexed and dropped.
    ViewType drop(::llvm::ArrayRef<int64_t> dims) const;
    /// Returns the type of a part of this view between two coordinates of dimension `dim`.
    ViewType slice(int64_t dim) const;
    /// Returns the same view type with other facts.
    ViewType withFacts(ViewFacts facts) const { return get(getRank(), getElementType(), getIsMut(), facts); }
    /// Returns whether every view of this type is also a view of type `weaker`, which may state fewer facts.
    bool implies(ViewType weaker) const;
    /// Returns the dimension of stride 1, or -1 when none is known.
    int64_t getUnit() const { return getFacts().unit; }
    /// Returns the bytes of an element in memory.
    int64_t getElementBytes() const;
  }];
  let skipDefaultBuilders = 1;
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

// The element types of tiles and views. Int of the language is `index`.
def Tile_Float : FloatOfWidths<[64, 32, 16]>;
def Tile_Element : AnyTypeOf<[F64, F32, F16, BF16, F8E4M3FN, F8E5M2, I1, I8, I16, I32, I64, Index],
                             "f64, f32, f16, bf16, f8E4M3FN, f8E5M2, i1, i8, i16, i32, i64 or index"> {
  let cppFunctionName = "isElementType";
}

// A tile: static shape, rank >= 1, at most 2^20 elements.
class Tile_TileOf<list<Type> elements, string what> : Type<And<[
    TensorOf<elements>.predicate,
    CPred<"::kpkg::tile::isTileShape($_self)">
  ]>, "tile of static shape of " # what, "::mlir::TensorType">;
def Tile_Tile : Tile_TileOf<[Tile_Element], "any element type">;
def Tile_IndexTile : Tile_TileOf<[Index], "index">;
def Tile_BoolTile : Tile_TileOf<[I1], "i1">;

// The result of a load: a tile, or a scalar when the view has rank 0.
def Tile_TileOrScalar : AnyTypeOf<[Tile_Tile, Tile_Element], "tile or scalar">;
def Tile_BoolLike : AnyTypeOf<[I1, Tile_BoolTile], "i1 or tile of i1">;

#endif
