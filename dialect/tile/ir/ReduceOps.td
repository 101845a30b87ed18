// Defines ops that combine the elements along an axis, and the matrix product.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

class Tile_AxisOp<string mnemonic, list<Trait> traits = []> : Tile_Op<mnemonic, [Pure] # traits> {
  let assemblyFormat = "$kind $value `axis` $axis attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_AxisOp<"reduce", [SameOperandsAndResultElementType]> {
  let summary = "reduces an axis to extent 1";
  let description = [{
    `sum` and `prod` of floats narrower than f32 are computed in f32 and rounded once at the end. Their order is
    unspecified, but fixed for a compiled kernel. `max` and `min` of floats give NaN where an element is NaN. Of zeros
    of both signs they give either. `max` and `min` read integers as signed, `umax` and `umin` as unsigned. `and` and
    `or` take integers and i1. Integer sums wrap.

    ```mlir
    %t = tile.reduce sum %a axis 1 : tensor<4x8xf32> -> tensor<4x1xf32>
    ```
  }];
  let arguments = (ins Tile_ReduceKind:$kind, Tile_Tile:$value, ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Tile_Tile:$result);
  let builders = [OpBuilder<(ins "ReduceKind":$kind, "::mlir::Value":$value, "int64_t":$axis)>];
  let hasFolder = 1;
}

def Tile_ArgReduceOp : Tile_AxisOp<"arg_reduce"> {
  let summary = "returns the index of the largest or smallest element along an axis";
  let description = [{
    The result is the first such index. A NaN counts as the extreme, and the first NaN wins. -0 equals +0.

    ```mlir
    %t = tile.arg_reduce max %a axis 1 : tensor<4x8xf32> -> tensor<4x1xindex>
    ```
  }];
  let arguments = (ins Tile_ArgReduceKind:$kind, Tile_Tile:$value, ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Tile_IndexTile:$result);
  let builders = [OpBuilder<(ins "ArgReduceKind":$kind, "::mlir::Value":$value, "int64_t":$axis)>];
  let hasFolder = 1;
}

def Tile_CombineOp : Tile_Op<"combine", [
    RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock, SameVariadicOperandSize]> {
  let summary = "reduces an axis to extent 1 by a function of several values";
  let description = [{
    The region takes two groups of scalars, with one value per input in each, and yields their combination. The
    combination must be associative and commutative up to rounding, and `inits` must be neutral for it. Elements are
    combined in unspecified order, and `inits` may be combined any number of times. All inputs have one shape.

    ```mlir
    %t:2 = tile.combine (%a, %k : tensor<4x8xf32>, tensor<4x8xi32>) axis 1 init (%zero, %one : f32, i32)
        -> tensor<4x1xf32>, tensor<4x1xi32> {
    ^bb0(%la: f32, %lb: i32, %ra: f32, %rb: i32):
      %s = arith.addf %la, %ra : f32
      %p = arith.muli %lb, %rb : i32
      tile.yield %s, %p : f32, i32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$inputs, Variadic<Tile_Element>:$inits,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Variadic<Tile_Tile>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    /// Builds the body's block with its arguments, without a terminator.
    OpBuilder<(ins "::mlir::ValueRange":$inputs, "::mlir::ValueRange":$inits, "int64_t":$axis)>
  ];
  let assemblyFormat = [{
    `(` $inputs `:` type($inputs) `)` `axis` $axis `init` `(` $inits `:` type($inits) `)`
    `->` type($outputs) attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock]> {
  let summary = "computes the inclusive scan along an axis by a function of several values";
  let description = [{
    Element `i` of the result combines elements `0..i` of the axis, in order. The region is as for `tile.combine`, and
    must be associative up to rounding.

    ```mlir
    %t = tile.scan (%a : tensor<4x8xf32>) axis 1 {
    ^bb0(%lhs: f32, %rhs: f32):
      %s = arith.addf %lhs, %rhs : f32
      tile.yield %s : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$inputs, ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Variadic<Tile_Tile>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    /// Builds the body's block with its arguments, without a terminator.
    OpBuilder<(ins "::mlir::ValueRange":$inputs, "int64_t":$axis)>
  ];
  let assemblyFormat = [{
    `(` $inputs `:` type($inputs) `)` `axis` $axis custom<SameTypes>(ref(type($inputs)), type($outputs))
    attr-dict-with-keyword $body
  }];
  let hasRegionVerifier = 1;
}

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "computes a matrix product plus an accumulator";
  let description = [{
    The result is `accumulator + lhs @ rhs`, for rank 3 once per batch. The accumulator is f32 for operands f16, bf16,
    f8 and f32. It is f64 for f64, and i32 for i8 (signed). Products of narrow floats are exact in f32. The order of the
    sums and the use of FMA are unspecified, but fixed for a compiled kernel. `precision = tf32` (f32 operands only)
    allows rounding operands to 10 bits of mantissa.

    With `positions`, `lhs` [m, k / 2] holds the two kept elements of every group of four of a 2:4 sparse row.
    `positions` is i16 [m, k / 16]. Element j of row i is in column 4 * (j / 2) + p. Element (i, j / 8) of `positions`
    holds p in two bits, from bit 2 * (j % 8) on. The columns of the two elements are ascending.

    ```mlir
    %t = tile.dot %a, %w, %acc precision tf32 : tensor<4x8xf32>, tensor<8x16xf32>, tensor<4x16xf32>
    %p = arith.constant dense<4> : tensor<4x1xi16> // columns 0 and 1 of the first four, 0 and 0 of the others
    %b = tile.reshape %w : tensor<8x16xf32> -> tensor<16x8xf32>
    %s = tile.dot %a, %b, %a at %p : tensor<4x8xf32>, tensor<16x8xf32>, tensor<4x8xf32>, tensor<4x1xi16>
    ```
  }];
  let arguments = (ins Tile_Tile:$lhs, Tile_Tile:$rhs, Tile_Tile:$accumulator, Optional<Tile_Tile>:$positions,
                       DefaultValuedAttr<Tile_DotPrecision, "DotPrecision::IEEE">:$precision);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` $accumulator (`at` $positions^)? (`precision` $precision^)? attr-dict
    `:` type($lhs) `,` type($rhs) `,` type($accumulator) (`,` type($positions)^)?
  }];
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$lhs, "::mlir::Value":$rhs, "::mlir::Value":$accumulator, "DotPrecision":$precision),
              [{ build($_builder, $_state, type, lhs, rhs, accumulator, ::mlir::Value(), precision); }]>
  ];
  let hasVerifier = 1;
}
