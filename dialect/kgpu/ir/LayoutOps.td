// Ops on tiles with layouts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_CvtLayoutOp : Kgpu_Op<"cvt_layout", [Pure]> {
  let summary = "converts a tile to another layout";
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
  let summary = "returns the tile unchanged, and keeps computations on it from moving above this place";
  let description = [{
    In a loop, keeps a tile from outside of it in its registers unchanged. Without the op, later compilers widen narrow
    elements once before the loop, where they take twice as many registers.

    ```mlir
    %t = kgpu.hold %row : tensor<1x256xf32, #wide>
    ```
  }];
  let arguments = (ins Tile_Tile:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Kgpu_WarpAnyOp : Kgpu_Op<"warp_any", [Pure]> {
  let summary = "tests whether any element that a thread of this warp holds is true";
  let description = [{
    The result differs between warps, and may cover a larger part of the tile, up to all of it. So code may depend on
    the result only if it has no effect where no element is true. Each warp must also execute its part alone.

    ```mlir
    %some = kgpu.warp_any %grows : tensor<1x256xi1, #wide>
    ```
  }];
  let arguments = (ins Tile_Tile:$value);
  let results = (outs I1:$result);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

def Kgpu_ColumnsOp : Kgpu_Op<"columns", [Pure, SameOperandsAndResultElementType]> {
  let summary = "takes a range of columns of a tile";
  let description = [{
    Each thread already holds the elements of its result.

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
  let summary = "joins tiles with equally many columns side by side";
  let description = [{
    Each thread already holds the elements of its result.

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
    Reduces like `tile.reduce`, but only over the registers and lanes of a warp. The result has W elements along the
    axis, one for each warp (and each CTA of a cluster) that holds a part of it. A later `tile.reduce` over the W
    elements completes the reduction.

    The layout of the result is `partialLayout` (Partial.h) of the operand's. Lanes along the axis become free. Warp
    bits, then block bits, have the coordinates 1, 2, 4, ... along it.

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
  let summary = "reduces an axis within each warp by a function";
  let description = [{
    Relates to `tile.combine` as `kgpu.partial_reduce` relates to `tile.reduce`.

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
  let summary = "scans along an axis within each warp, and also returns the totals";
  let description = [{
    Scans like `tile.scan`. The `totals` have one element along the axis, which combines all its elements, and the slice
    of the operands' layout. With `exclusive`, element `i` of the first results combines elements `0..i-1`, and element
    0 is undefined.

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
  let summary = "combines each part of a scan with the total of the parts before it";
  let description = [{
    The shape of `before` is that of the values, with extent 1 in some dimensions. Its layout is the slice of theirs.
    Each result is the value itself where the coordinate along the axis is 0. Elsewhere the region combines `before` and
    the value. Moves nothing between threads.

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
  let summary = "returns, for each element, the partial result of the warp that holds it";
  let description = [{
    Inverts the shape change of `kgpu.partial_reduce`: every element gets the partial result of the warp (and CTA) that
    holds it. Moves nothing between threads.

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
  let summary = "gives every warp the partial results of all warps";
  let description = [{
    The `parts` have one element along the axis for each warp and CTA, like results of `kgpu.partial_reduce`. In the
    results every warp holds all of them. All tiles share one exchange.

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
  let summary = "ends the region of a kgpu op and yields its values";
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
