// Defines kernels, the grid, the persistent loop, and the ops that report to the host.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Tile_KernelOp : Tile_Op<"kernel", [IsolatedFromAbove, AffineScope, FunctionOpInterface]> {
  let summary = "defines device code that runs once per block of a grid";
  let description = [{
    Arguments are views and scalars. `kernel` and `params` name the `.k` kernel of this instance and its comptime
    values. `variant` names the facts that its argument types state. `schedule` holds the author's hints, which have no
    effect on results. Only arguments, `tile.drop` and `tile.slice` produce views.

    ```mlir
    tile.kernel @scale(%x: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>, %alpha: f32)
        attributes {kernel = "scale", params = {T = "float32"}, variant = "any"} {
      %zero = arith.constant 0.0 : f32
      %width = arith.constant 64 : index
      %block = tile.block_id x
      %start = arith.muli %block, %width : index
      %v = tile.load %x[%start] fill %zero : !tile.view<1xf32> -> tensor<64xf32>
      %factor = tile.splat %alpha : f32 -> tensor<64xf32>
      %w = arith.mulf %v, %factor : tensor<64xf32>
      tile.store %w, %y[%start] : tensor<64xf32>, !tile.view<1xf32, mut>
      tile.return
    }
    ```
  }];
  let arguments = (ins
    SymbolNameAttr:$sym_name,
    TypeAttrOf<FunctionType>:$function_type,
    OptionalAttr<StrAttr>:$kernel,
    OptionalAttr<DictionaryAttr>:$params,
    OptionalAttr<StrAttr>:$variant,
    OptionalAttr<Tile_ScheduleAttr>:$schedule,
    OptionalAttr<StrAttr>:$sym_visibility,
    OptionalAttr<DictArrayAttr>:$arg_attrs,
    OptionalAttr<DictArrayAttr>:$res_attrs
  );
  let regions = (region MinSizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    /// Builds a kernel with an empty entry block that has the argument types `arguments`.
    OpBuilder<(ins "::llvm::StringRef":$name, "::mlir::TypeRange":$arguments)>
  ];
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
    /// Returns whether the kernel has a `tile.for_tiles`. Such a kernel is launched without a grid.
    bool isPersistent();
    /// Returns the value of the hint in `@schedule`; 0 leaves the choice to the compiler.
    uint32_t getHint(Hint hint) { return getSchedule() ? getSchedule()->getHints()[hint] : 0; }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_ReturnOp : Tile_Op<"return", [Pure, HasParent<"KernelOp">, Terminator, ReturnLike]> {
  let summary = "ends a kernel";
  let description = [{
    ```mlir
    tile.return
    ```
  }];
  let assemblyFormat = "attr-dict";
}

class Tile_GridOp<string mnemonic> : Tile_Op<mnemonic, [Pure]> {
  let arguments = (ins Tile_GridAxis:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
}

def Tile_BlockIdOp : Tile_GridOp<"block_id"> {
  let summary = "returns the coordinate of this block in the grid, 0 <= id < grid_dim";
  let description = [{
    ```mlir
    %block = tile.block_id x
    ```
  }];
}

def Tile_GridDimOp : Tile_GridOp<"grid_dim"> {
  let summary = "returns the number of blocks along an axis of the grid";
  let description = [{
    ```mlir
    %n = tile.grid_dim y
    ```
  }];
}

def Tile_ForTilesOp : Tile_Op<"for_tiles", [
    RecursiveMemoryEffects, DeclareOpInterfaceMethods<LoopLikeOpInterface>,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "runs its body once per tile of an output, distributed over the blocks";
  let description = [{
    The body runs for every coordinate tuple `0 <= c[d] < counts[d]`. Iterations are independent: each writes its own
    part of memory, and reads no memory that another iteration writes. The target chooses the block and the order of the
    iterations. A count of zero or less means no iteration.

    ```mlir
    tile.for_tiles (%m, %n) to (%rows, %columns) {
      %v = tile.load %x[%m, %n] fill %zero : !tile.view<2xf32> -> tensor<1x1xf32>
      tile.store %v, %y[%m, %n] : tensor<1x1xf32>, !tile.view<2xf32, mut>
    }
    ```
  }];
  let arguments = (ins Variadic<Index>:$counts);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    /// Builds a loop over `counts`. The body has the coordinates as arguments and ends in `tile.yield`.
    OpBuilder<(ins "::mlir::ValueRange":$counts)>
  ];
  let extraClassDeclaration = [{
    ::mlir::Block::BlockArgListType getCoordinates() { return getBody().getArguments(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [
    Pure, Terminator, ReturnLike, ParentOneOf<["ForTilesOp", "CombineOp", "ScanOp"]>]> {
  let summary = "ends a region of a tile op and returns its values";
  let description = [{
    ```mlir
    %total = tile.combine (%a : tensor<4x8xf32>) axis 1 init (%zero : f32) -> tensor<4x1xf32> {
    ^bb0(%lhs: f32, %rhs: f32):
      %s = arith.addf %lhs, %rhs : f32
      tile.yield %s : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Element>:$values);
  let builders = [OpBuilder<(ins), [{ (void)$_builder; }]>];
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemWrite]>]> {
  let summary = "sends values to the host's print function";
  let description = [{
    `format` has one `{}` for each value. A tile prints its elements in row-major order. The output of different blocks
    is unordered.

    ```mlir
    tile.print "start {} factor {}" (%start, %alpha) : index, f32
    ```
  }];
  let arguments = (ins StrAttr:$format, Variadic<Tile_TileOrScalar>:$values);
  let assemblyFormat = "$format (`(` $values^ `)` `:` type($values))? attr-dict";
  let hasVerifier = 1;
}

def Tile_AssertOp : Tile_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "ends the launch with a message unless the condition holds";
  let description = [{
    A tile of conditions must hold in every element. After a failed assert the launch reports `message`, and memory that
    it writes has unspecified contents.

    ```mlir
    tile.assert %cond, "the row must not be empty" : i1
    ```
  }];
  let arguments = (ins Tile_BoolLike:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
  let hasCanonicalizeMethod = 1;
}
