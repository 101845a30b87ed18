// Ops on tiles with layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_CvtLayoutOp : Kgpu_Op<"cvt_layout", [Pure]> {
  let summary = "the same tile in another layout";
  let description = [{
    ```mlir
    %t = kgpu.cvt_layout %row : tensor<1x256xf32, #wide> -> tensor<1x256xf32, #narrow>
    ```
  }];
  let arguments = (ins Tile_Tile:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Kgpu_HoldOp : Kgpu_Op<"hold", [Pure, Elementwise, SameOperandsAndResultType]> {
  let summary = "the same tile, of which nothing is computed before this place";
  let description = [{
    In a loop, a tile from outside of it: it stays in its registers as it is. Without this, compilers further down widen narrow elements once and for all in
    front of the loop, where they take twice as many.

    ```mlir
    %t = kgpu.hold %row : tensor<1x256xf32, #wide>
    ```
  }];
  let arguments = (ins Tile_Tile:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Kgpu_WarpAnyOp : Kgpu_Op<"warp_any", [Pure]> {
  let summary = "whether an element of a tile is true that a thread of this warp holds";
  let description = [{
    Warps differ in the answer, and it may be that for a larger part of the tile, up to all of it. So only that may depend on it which is the same with and without, where
    none of the elements is true, and of which each warp does its part alone.

    ```mlir
    %some = kgpu.warp_any %grows : tensor<1x256xi1, #wide>
    ```
  }];
  let arguments = (ins Tile_Tile:$value);
  let results = (outs I1:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Kgpu_ColumnsOp : Kgpu_Op<"columns", [Pure, SameOperandsAndResultElementType]> {
  let summary = "columns of a tile that follow each other, from one of them";
  let description = [{
    Each thread has those of its result already.

    ```mlir
    %first = kgpu.columns %row from 0 : tensor<1x256xf32, #wide> -> tensor<1x128xf32, #half>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, ConfinedAttr<I64Attr, [IntNonNegative]>:$first);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value `from` $first attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Kgpu_JoinColumnsOp : Kgpu_Op<"join_columns", [Pure]> {
  let summary = "a tile of parts with equally many columns, side by side";
  let description = [{
    Each thread has the elements of its result already.

    ```mlir
    %whole = kgpu.join_columns %part, %part : tensor<1x128xf32, #half>, tensor<1x128xf32, #half> -> tensor<1x256xf32, #wide>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$parts);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$parts attr-dict `:` type($parts) `->` type($result)";
  let hasVerifier = 1;
}

def Kgpu_PartialReduceOp : Kgpu_Op<"partial_reduce", [Pure, SameOperandsAndResultElementType]> {
  let summary = "reduces an axis within each warp";
  let description = [{
    As `tile.reduce`, but only over the registers and lanes of a warp: the result has one element along the axis for each warp
    (and each CTA of a cluster) that holds a part of it, W of them. Its layout is `partialLayout` (Partial.h) of the operand's:
    lanes that lay along the axis are free in it, warp bits have the coordinates 1, 2, 4, ... in their order, then block bits.
    A later `tile.reduce` over the W elements gives the whole.

    ```mlir
    %t = kgpu.partial_reduce sum %row axis 1 : tensor<1x256xf32, #wide> -> tensor<1x2xf32, #part>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_Tile:$value, ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Tile_Tile:$result);
  let builders = [
    /// The result type follows from the operand.
    OpBuilder<(ins "::kpkg::tile::ReduceKind":$kind, "::mlir::Value":$value, "int64_t":$axis)>
  ];
  let assemblyFormat = "$kind $value `axis` $axis attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Kgpu_PartialCombineOp : Kgpu_Op<"partial_combine", [
    RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock, SameVariadicOperandSize]> {
  let summary = "reduces an axis by a function within each warp";
  let description = [{
    To `tile.combine` what `kgpu.partial_reduce` is to `tile.reduce`.

    ```mlir
    %t:2 = kgpu.partial_combine (%row, %row : tensor<1x256xf32, #wide>, tensor<1x256xf32, #wide>) axis 1 init (%zero, %zero : f32, f32)
        -> tensor<1x2xf32, #part>, tensor<1x2xf32, #part> {
    ^bb0(%la: f32, %lb: f32, %ra: f32, %rb: f32):
      %s = arith.addf %la, %ra : f32
      %m = arith.maximumf %lb, %rb : f32
      kgpu.yield %s, %m : f32, f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$inputs, Variadic<Tile_Element>:$inits,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Variadic<Tile_Tile>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `:` type($inputs) `)` `axis` $axis `init` `(` $inits `:` type($inits) `)`
    `->` type($outputs) attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Kgpu_PartialScanOp : Kgpu_Op<"partial_scan", [
    RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock, SameVariadicResultSize]> {
  let summary = "scan along an axis that lies within a warp, with its totals";
  let description = [{
    As `tile.scan`; `totals`, with one element along the axis, combine all elements of it, and have the slice of the operands' layout. With
    `exclusive`, element `i` of the first results combines elements `0..i-1`, and element 0 has no meaning.

    ```mlir
    %t:2 = kgpu.partial_scan (%gathered : tensor<1x2xf32, #all>) axis 1 exclusive -> tensor<1x2xf32, #all>, tensor<1x1xf32, #one> {
    ^bb0(%left: f32, %right: f32):
      %s = arith.addf %left, %right : f32
      kgpu.yield %s : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$inputs, ConfinedAttr<I64Attr, [IntNonNegative]>:$axis, UnitAttr:$exclusive);
  let results = (outs Variadic<Tile_Tile>:$outputs, Variadic<Tile_Tile>:$totals);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $inputs `:` type($inputs) `)` `axis` $axis (`exclusive` $exclusive^)? `->` type(results) attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Kgpu_PutBeforeOp : Kgpu_Op<"put_before", [
    RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock, SameVariadicOperandSize]> {
  let summary = "puts what stands before each part of a scan in front of it";
  let description = [{
    `before` has the values' shape, with extent 1 in some dimensions, and the slice of their layout. Each result is the value where the coordinate along the axis is 0, else
    what the region makes of `before` and the value. Moves nothing between threads.

    ```mlir
    %t = kgpu.put_before (%before, %row : tensor<1x1xf32, #each>, tensor<1x256xf32, #wide>) axis 0 -> tensor<1x256xf32, #wide> {
    ^bb0(%left: f32, %right: f32):
      %s = arith.addf %left, %right : f32
      kgpu.yield %s : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$before, Variadic<Tile_Tile>:$values,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Variadic<Tile_Tile>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` operands `:` type(operands) `)` `axis` $axis `->` type($outputs) attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Kgpu_OwnPartOp : Kgpu_Op<"own_part", [Pure, SameOperandsAndResultElementType]> {
  let summary = "the part of the own warp, for each element";
  let description = [{
    The way back from `kgpu.partial_reduce`: every element gets the part of the warp (and CTA) that holds it. Moves nothing between threads.

    ```mlir
    %t = kgpu.own_part %partial axis 1 : tensor<1x2xf32, #part> -> tensor<1x256xf32, #wide>
    ```
  }];
  let arguments = (ins Tile_Tile:$part, ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$part `axis` $axis attr-dict `:` type($part) `->` type($result)";
  let hasVerifier = 1;
}

def Kgpu_SharePartsOp : Kgpu_Op<"share_parts", [Pure]> {
  let summary = "gives every warp the parts of all warps";
  let description = [{
    `parts` have one element along the axis for each warp and CTA, as those of `kgpu.partial_reduce`; of the results every warp holds all. All tiles
    travel together, in one exchange.

    ```mlir
    %t:2 = kgpu.share_parts %partial, %partial axis 1 : tensor<1x2xf32, #part>, tensor<1x2xf32, #part>
        -> tensor<1x2xf32, #all>, tensor<1x2xf32, #all>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$parts, ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Variadic<Tile_Tile>:$outputs);
  let assemblyFormat = "$parts `axis` $axis attr-dict `:` type($parts) `->` type($outputs)";
  let hasVerifier = 1;
}

def Kgpu_YieldOp : Kgpu_Op<"yield", [Pure, Terminator, ReturnLike, ParentOneOf<["PartialCombineOp", "PartialScanOp", "PutBeforeOp"]>]> {
  let summary = "ends the region of a kgpu op and gives its values";
  let description = [{
    ```mlir
    %t = kgpu.partial_combine (%row : tensor<1x256xf32, #wide>) axis 1 init (%zero : f32) -> tensor<1x2xf32, #part> {
    ^bb0(%left: f32, %right: f32):
      %s = arith.addf %left, %right : f32
      kgpu.yield %s : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Element>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}
