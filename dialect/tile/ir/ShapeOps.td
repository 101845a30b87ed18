// Defines ops that create and reshape tiles, without arithmetic.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Tile_SplatOp : Tile_Op<"splat", [
    Pure, TypesMatchWith<"value has the tile's element type", "result", "value",
                         "::llvm::cast<::mlir::TensorType>($_self).getElementType()">]> {
  let summary = "creates a tile whose elements all equal a scalar";
  let description = [{
    ```mlir
    %t = tile.splat %alpha : f32 -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Tile_Element:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasFolder = 1;
}

def Tile_ScalarOp : Tile_Op<"scalar", [
    Pure, TypesMatchWith<"result has the tile's element type", "value", "result",
                         "::llvm::cast<::mlir::TensorType>($_self).getElementType()">]> {
  let summary = "returns the element of a tile that has only one";
  let description = [{
    Numbers that are computed from tiles decide branches and loops. All threads hold such a tile, and so its element.

    ```mlir
    %first = arith.constant dense<2.0> : tensor<1x1xf32>
    %s = tile.scalar %first : tensor<1x1xf32> -> f32
    ```
  }];
  let arguments = (ins Tile_Tile:$value);
  let results = (outs Tile_Element:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_IotaOp : Tile_Op<"iota", [Pure]> {
  let summary = "creates the tile 0, 1, ..., n-1";
  let description = [{
    ```mlir
    %t = tile.iota : tensor<64xindex>
    ```
  }];
  let results = (outs Tile_IndexTile:$result);
  let builders = [OpBuilder<(ins "int64_t":$size), [{
    build($_builder, $_state, ::mlir::RankedTensorType::get({size}, $_builder.getIndexType()));
  }]>];
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Tile_BroadcastOp : Tile_Op<"broadcast", [Pure, SameOperandsAndResultElementType]> {
  let summary = "repeats a tile along dimensions of extent 1";
  let description = [{
    Operand and result have the same rank. Each extent of the operand is 1 or the result's extent.

    ```mlir
    %t = tile.broadcast %row : tensor<1x8xf32> -> tensor<4x8xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_ReshapeOp : Tile_Op<"reshape", [Pure, SameOperandsAndResultElementType]> {
  let summary = "returns the same elements in row-major order, in another shape";
  let description = [{
    ```mlir
    %t = tile.reshape %a : tensor<4x8xf32> -> tensor<2x2x8xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$value);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_PermuteOp : Tile_Op<"permute", [Pure, SameOperandsAndResultElementType]> {
  let summary = "reorders the dimensions of a tile";
  let description = [{
    Dimension `i` of the result is dimension `permutation[i]` of the operand.

    ```mlir
    %t = tile.permute %a [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, DenseI64ArrayAttr:$permutation);
  let results = (outs Tile_Tile:$result);
  let builders = [
    /// Infers the result type from the operand and the permutation.
    OpBuilder<(ins "::mlir::Value":$value, "::llvm::ArrayRef<int64_t>":$permutation)>
  ];
  let assemblyFormat = "$value $permutation attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_ExtractOp : Tile_Op<"extract", [Pure, SameOperandsAndResultElementType]> {
  let summary = "takes elements at equal distances along each dimension";
  let description = [{
    Element i of the result is element `offset + step * i` of the operand, in each dimension. Offsets and steps have an
    entry for each dimension. A negative step reverses the dimension. Extents are those of the result.

    ```mlir
    %t = tile.extract %a [0, 1] step [1, 2] : tensor<4x8xf32> -> tensor<4x4xf32>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, DenseI64ArrayAttr:$offsets, DenseI64ArrayAttr:$steps);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = "$value $offsets `step` $steps attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_JoinOp : Tile_Op<"join", [Pure, SameOperandsAndResultElementType]> {
  let summary = "puts tiles one after the other along an axis";
  let description = [{
    The tiles have equal extents in all other dimensions.

    ```mlir
    %t = tile.join %a, %b axis 1 : tensor<4x8xf32>, tensor<4x2xf32> -> tensor<4x10xf32>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$parts, ConfinedAttr<I64Attr, [IntNonNegative]>:$axis);
  let results = (outs Tile_Tile:$result);
  let builders = [
    /// Infers the result type from the parts.
    OpBuilder<(ins "::mlir::ValueRange":$parts, "int64_t":$axis)>
  ];
  let assemblyFormat = "$parts `axis` $axis attr-dict `:` type($parts) `->` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Tile_UnpackOp : Tile_Op<"unpack", [Pure]> {
  let summary = "takes the fields of a few bits out of words";
  let description = [{
    A word has fields of `bits` bits, the lowest bits first, which become adjacent elements along the last dimension.
    Elements of the result are the numbers, as i8 or as floats. With `signed`, fields are in two's complement. With
    `float`, fields of 4 bits are floats with 2 bits of exponent and 1 bit of mantissa, and the result is of floats.

    ```mlir
    %words = arith.constant dense<0x76543210> : tensor<4x8xi32>
    %t = tile.unpack %words bits 4 : tensor<4x8xi32> -> tensor<4x64xi8>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, I64Attr:$bits, UnitAttr:$isSigned, UnitAttr:$isFloat);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $value (`signed` $isSigned^)? (`float` $isFloat^)? `bits` $bits attr-dict `:` type($value) `->` type($result)
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    /// Returns the number of fields of a word.
    int64_t getFields() {
      return ::llvm::cast<::mlir::RankedTensorType>(getValue().getType()).getElementTypeBitWidth() / getBits();
    }
  }];
}
