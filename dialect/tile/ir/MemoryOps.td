// Defines views of memory: their extents, indexing, loads and stores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

class Tile_ViewQueryOp<string mnemonic> : Tile_Op<mnemonic, [Pure]> {
  let arguments = (ins Tile_ViewType:$view, ConfinedAttr<I64Attr, [IntNonNegative]>:$dimension);
  let results = (outs Index:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$view, "int64_t":$dimension), [{
    build($_builder, $_state, $_builder.getIndexType(), view, $_builder.getI64IntegerAttr(dimension));
  }]>];
  let assemblyFormat = "$view `,` $dimension attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_DimOp : Tile_ViewQueryOp<"dim"> {
  let summary = "returns the extent of a dimension of a view, >= 0";
  let description = [{
    ```mlir
    %d = tile.dim %x, 1 : !tile.view<2xf32>
    ```
  }];
}

def Tile_StrideOp : Tile_ViewQueryOp<"stride"> {
  let summary = "returns the stride of a dimension of a view, in elements; may be 0 or negative";
  let description = [{
    ```mlir
    %s = tile.stride %x, 0 : !tile.view<2xf32>
    ```
  }];
}

def Tile_ScratchOp : Tile_Op<"scratch"> {
  let summary = "provides memory that only this block accesses";
  let description = [{
    The view is in row-major order, and its contents are undefined at first. Each execution of the op provides memory
    of its own.

    ```mlir
    %m = tile.scratch [64, 36] : !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
    ```
  }];
  let arguments = (ins DenseI64ArrayAttr:$shape);
  let results = (outs Res<Tile_ViewType, "", [MemAlloc]>:$result);
  let builders = [OpBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape, "::mlir::Type":$element)>];
  let assemblyFormat = "$shape attr-dict `:` qualified(type($result))";
  let extraClassDeclaration = [{
    /// Returns the type of scratch memory, with all facts.
    static ViewType typeOf(::llvm::ArrayRef<int64_t> shape, ::mlir::Type element);
    /// Returns the distance between neighbours along a dimension, in elements.
    int64_t getStride(int64_t dimension);
  }];
  let hasVerifier = 1;
}

def Tile_DropOp : Tile_Op<"drop", [Pure]> {
  let summary = "indexes dimensions of a view, and drops them";
  let description = [{
    The result is the part of the view where dimension `dims[i]` has coordinate `indices[i]`. It keeps the extents and
    strides of the other dimensions. If an index is negative or outside its dimension, the result has no elements. Every
    load from it then returns the fill, and every store to it is dropped.

    ```mlir
    %t = tile.drop %q [0, 1] at (%batch, %head) : !tile.view<4xbf16, unit = 3> -> !tile.view<2xbf16, unit = 1>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, DenseI64ArrayAttr:$dims, Variadic<Index>:$indices);
  let results = (outs Tile_ViewType:$result);
  let builders = [
    /// Infers the result type from the view and `dims`, which must be ascending.
    OpBuilder<(ins "::mlir::Value":$view, "::llvm::ArrayRef<int64_t>":$dims, "::mlir::ValueRange":$indices), [{
      build($_builder, $_state, ::llvm::cast<ViewType>(view.getType()).drop(dims), view, dims, indices);
    }]>
  ];
  let assemblyFormat = "$view $dims `at` `(` $indices `)` attr-dict `:` qualified(type($view)) `->` qualified(type($result))";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_SliceOp : Tile_Op<"slice", [Pure]> {
  let summary = "returns the part of a view between two coordinates of a dimension";
  let description = [{
    The result has the elements whose coordinate along `dimension` is at least `begin` and less than `end`. Its
    coordinates count from `begin`. Both bounds are first clipped to 0 and the extent, and `end` to no less than
    `begin`.

    ```mlir
    %t = tile.slice %x, 0 from %r to %rows : !tile.view<2xf32> -> !tile.view<2xf32>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, ConfinedAttr<I64Attr, [IntNonNegative]>:$dimension, Index:$begin, Index:$end);
  let results = (outs Tile_ViewType:$result);
  let builders = [
    /// Infers the result type from the view and the dimension.
    OpBuilder<(ins "::mlir::Value":$view, "int64_t":$dimension, "::mlir::Value":$begin, "::mlir::Value":$end), [{
      build($_builder, $_state, ::llvm::cast<ViewType>(view.getType()).slice(dimension), view, $_builder.getI64IntegerAttr(dimension), begin, end);
    }]>
  ];
  let assemblyFormat = "$view `,` $dimension `from` $begin `to` $end attr-dict `:` qualified(type($view)) `->` qualified(type($result))";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

def Tile_LoadOp : Tile_Op<"load", [
    TypesMatchWith<"fill has the view's element type", "view", "fill", "::llvm::cast<ViewType>($_self).getElementType()">]> {
  let summary = "reads the tile that starts at element coordinates";
  let description = [{
    Element `i` of the result is element `offsets + i` of the view, or `fill` outside the view. A view of rank 0 loads a
    scalar.

    ```mlir
    %t = tile.load %x[%r, %c] fill %zero : !tile.view<2xf32> -> tensor<4x64xf32>
    ```
  }];
  let arguments = (ins Arg<Tile_ViewType, "", [MemRead]>:$view, Variadic<Index>:$offsets, Tile_Element:$fill);
  let results = (outs Tile_TileOrScalar:$result);
  let assemblyFormat = "$view `[` $offsets `]` `fill` $fill attr-dict `:` qualified(type($view)) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_StoreOp : Tile_Op<"store"> {
  let summary = "writes a tile at element coordinates";
  let description = [{
    Element `i` of `value` becomes element `offsets + i` of the view. Elements outside the view are not written. A view
    of rank 0 stores a scalar. If a stride is 0, several values go to one element, and which of them remains is
    unspecified.

    ```mlir
    tile.store %a, %y[%r, %c] : tensor<4x8xf32>, !tile.view<2xf32, mut>
    ```
  }];
  let arguments = (ins Tile_TileOrScalar:$value, Arg<Tile_ViewType, "", [MemWrite]>:$view, Variadic<Index>:$offsets);
  let assemblyFormat = "$value `,` $view `[` $offsets `]` attr-dict `:` type($value) `,` qualified(type($view))";
  let hasVerifier = 1;
}

def Tile_AddStoreOp : Tile_Op<"add_store"> {
  let summary = "adds a tile atomically to the elements at element coordinates";
  let description = [{
    Element `i` of `value` is added to element `offsets + i` of the view. Elements outside the view are unchanged.
    Additions to one element, by this block or others, are atomic, and their order is unspecified. Elements are f32,
    f64, i32, i64 or index.

    ```mlir
    tile.add_store %a, %y[%r, %c] : tensor<4x8xf32>, !tile.view<2xf32, mut>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Arg<Tile_ViewType, "", [MemRead, MemWrite]>:$view, Variadic<Index>:$offsets);
  let assemblyFormat = "$value `,` $view `[` $offsets `]` attr-dict `:` type($value) `,` qualified(type($view))";
  let hasVerifier = 1;
}

def Tile_GatherOp : Tile_Op<"gather", [AttrSizedOperandSegments,
    TypesMatchWith<"fill has the view's element type", "view", "fill", "::llvm::cast<ViewType>($_self).getElementType()">]> {
  let summary = "reads one element of the view for each element of the index tiles";
  let description = [{
    `indices` has one tile of coordinates per dimension of the view, all of the result's shape. An element is `fill` if
    its coordinates are outside the view or its mask is false.

    ```mlir
    %t = tile.gather %x[%i, %j] fill %zero mask %mask : !tile.view<2xf32>, tensor<4x8xindex> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Arg<Tile_ViewType, "", [MemRead]>:$view, Variadic<Tile_IndexTile>:$indices, Tile_Element:$fill,
                       Optional<Tile_BoolTile>:$mask);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $view `[` $indices `]` `fill` $fill (`mask` $mask^)? attr-dict `:` qualified(type($view)) `,`
    custom<IndexTileType>(ref($indices), ref($mask), type($indices), type($mask)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Tile_ScatterOp : Tile_Op<"scatter", [AttrSizedOperandSegments]> {
  let summary = "writes one element of the view for each element of the index tiles";
  let description = [{
    An element is not written if its coordinates are outside the view or its mask is false. If two elements have the
    same coordinates, which value remains is unspecified.

    ```mlir
    tile.scatter %a, %y[%i, %j] mask %mask : tensor<4x8xf32>, !tile.view<2xf32, mut>, tensor<4x8xindex>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Arg<Tile_ViewType, "", [MemWrite]>:$view, Variadic<Tile_IndexTile>:$indices,
                       Optional<Tile_BoolTile>:$mask);
  let assemblyFormat = [{
    $value `,` $view `[` $indices `]` (`mask` $mask^)? attr-dict `:` type($value) `,` qualified(type($view)) `,`
    custom<IndexTileType>(ref($indices), ref($mask), type($indices), type($mask))
  }];
  let hasVerifier = 1;
}

def Tile_AtomicOp : Tile_Op<"atomic", [AttrSizedOperandSegments]> {
  let summary = "updates one element of the view atomically for each element of the index tiles";
  let description = [{
    An element has no effect if its coordinates are outside the view or its mask is false. Updates of one element, by
    this block or others, are atomic, and their order is unspecified. They do not order other memory accesses. Float max
    and min propagate NaN. `exchange` writes the value. `compare_exchange` writes it if the element has the bits of
    `expected`. Elements are f32, f64, i32, i64 or index; `add` also takes f16 and bf16.

    The optional result has the elements before the update. It is 0 where an element has no effect.

    ```mlir
    tile.atomic add %a, %y[%i, %j] mask %mask : tensor<4x8xf32>, !tile.view<2xf32, mut>, tensor<4x8xindex>
    %old = tile.atomic compare_exchange %a, %y[%i, %j] expected %e : tensor<4x8xf32>, !tile.view<2xf32, mut>, tensor<4x8xindex> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Tile_AtomicKind:$kind, Tile_Tile:$value, Arg<Tile_ViewType, "", [MemRead, MemWrite]>:$view,
                       Variadic<Tile_IndexTile>:$indices, Optional<Tile_BoolTile>:$mask, Optional<Tile_Tile>:$expected);
  let results = (outs Optional<Tile_Tile>:$old);
  let builders = [
    /// Builds an update without a result.
    OpBuilder<(ins "::kpkg::tile::AtomicKind":$kind, "::mlir::Value":$value, "::mlir::Value":$view, "::mlir::ValueRange":$indices, "::mlir::Value":$mask), [{
      build($_builder, $_state, ::mlir::Type(), kind, value, view, indices, mask, ::mlir::Value());
    }]>
  ];
  let assemblyFormat = [{
    $kind $value `,` $view `[` $indices `]` (`mask` $mask^)? (`expected` $expected^)? attr-dict `:` type($value) `,`
    qualified(type($view)) `,` custom<UpdateTypes>(ref($indices), ref($mask), ref($expected), ref(type($value)),
        type($indices), type($mask), type($expected)) (`->` type($old)^)?
  }];
  let hasVerifier = 1;
}
