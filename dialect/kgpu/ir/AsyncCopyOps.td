// Copies from global to shared memory that need no registers and run while threads go on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_AsyncCopyOp : Kgpu_SharedOp<"async_copy", [AttrSizedOperandSegments]> {
  let summary = "starts to copy a tile of a view into a buffer";
  let description = [{
    Each thread copies what it has in `layout`, a vector of 4, 8 or 16 bytes at a time. Elements outside of the view, and all
    where `inside` is false, become zero. In a loop, no thread may read the buffer before the loop's next iteration.

    ```mlir
    kgpu.async_copy %x[%r, %c] as #wide if %inside to %buffer : !tile.view<2xf32>, !kgpu.smem<1x2xf32>
    ```
  }];
  let arguments = (ins Arg<Tile_ViewType, "", [MemRead]>:$view, Variadic<Index>:$offsets, Kgpu_LayoutAttr:$layout,
                       Optional<I1>:$inside, Arg<Kgpu_SharedType, "", [MemWrite]>:$buffer);
  let assemblyFormat = [{
    $view `[` $offsets `]` `as` qualified($layout) (`if` $inside^)? `to` $buffer attr-dict `:` qualified(type($view)) `,` qualified(type($buffer))
  }];
  let hasVerifier = 1;
}

def Kgpu_AsyncGatherOp : Kgpu_SharedOp<"async_gather", [AttrSizedOperandSegments]> {
  let summary = "starts to copy pieces of rows of a view into a buffer";
  let description = [{
    `indices` are the coordinates of a gather of rows (tile::rowGather), one tile for each dimension of the view, all in one layout. Each thread copies
    what it has in that layout, a vector of 4, 8 or 16 bytes at a time. Elements outside of the view, and all where `inside` is false, become zero. In
    a loop, no thread may read the buffer before the loop's next iteration.

    ```mlir
    kgpu.async_gather %table[%rows, %columns] if %inside to %buffer : !table[tensor<16x16xindex, #rows>, tensor<16x16xindex, #rows>], !kgpu.smem<16x16xf16>
    ```
  }];
  let arguments = (ins Arg<Tile_ViewType, "", [MemRead]>:$view, Variadic<Tile_IndexTile>:$indices, Optional<I1>:$inside,
                       Arg<Kgpu_SharedType, "", [MemWrite]>:$buffer);
  let assemblyFormat = [{
    $view `[` $indices `]` (`if` $inside^)? `to` $buffer attr-dict `:` qualified(type($view)) `[` type($indices) `]` `,` qualified(type($buffer))
  }];
  let hasVerifier = 1;
}

def Kgpu_AsyncCommitOp : Kgpu_Op<"async_commit", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "makes a group of the copies since the one before";
  let description = [{
    ```mlir
    kgpu.async_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_AsyncWaitOp : Kgpu_Op<"async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until all groups but the latest are done";
  let description = [{
    Only for copies of the same thread: what others copied is there after a barrier.

    ```mlir
    kgpu.async_wait 2
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def Kgpu_FetchOp : Kgpu_SharedOp<"fetch"> {
  let summary = "starts to copy a tile of a view to shared memory, each thread what it will read itself";
  let description = [{
    Each thread copies the elements that it holds of `tile` to a place of its own in the buffer, which has that many bytes: in vectors of 4, 8 or 16
    bytes, one behind the other for neighbouring threads. Elements outside of the view, and all where `inside` is false, become zero.
    Ends with `kgpu.async_commit` and `kgpu.async_wait` as `kgpu.async_copy`; no barrier is needed. What the thread has read of the buffer
    with `kgpu.fetched` before may be overwritten.

    ```mlir
    kgpu.fetch %x[%r, %c] of tensor<1x256xf32, #wide> if %inside to %buffer : !in, !kgpu.smem<1024xi8>
    ```
  }];
  let arguments = (ins Arg<Tile_ViewType, "", [MemRead]>:$view, Variadic<Index>:$offsets, TypeAttrOf<Tile_Tile>:$tile, I1:$inside,
                       Arg<Kgpu_SharedType, "", [MemWrite]>:$buffer);
  let assemblyFormat = [{
    $view `[` $offsets `]` `of` $tile `if` $inside `to` $buffer attr-dict `:` qualified(type($view)) `,` qualified(type($buffer))
  }];
  let hasVerifier = 1;
}

def Kgpu_TouchOp : Kgpu_Op<"touch", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "starts to bring what a tile of a row will be loaded from into the second-level cache";
  let description = [{
    The view has one dimension, of unit stride. Nothing is brought where `inside` is false, or from outside of the view.

    ```mlir
    kgpu.touch %x[%r] of tensor<4xf32> if %inside : !in
    ```
  }];
  let arguments = (ins Arg<Tile_ViewType, "", [MemRead]>:$view, Variadic<Index>:$offsets, TypeAttrOf<Tile_Tile>:$tile, I1:$inside);
  let assemblyFormat = "$view `[` $offsets `]` `of` $tile `if` $inside attr-dict `:` qualified(type($view))";
  let hasVerifier = 1;
}

def Kgpu_FetchedOp : Kgpu_SharedOp<"fetched", [
    TypesMatchWith<"fill has the view's element type", "view", "fill", "::llvm::cast<::kpkg::tile::ViewType>($_self).getElementType()">]> {
  let summary = "reads back what the thread has fetched";
  let description = [{
    The tile of `view` at `offsets`, with `fill` for elements outside of it, as `tile.load` would give it. The latest `kgpu.fetch` to this buffer was that of the
    same tile, and has been waited for.

    ```mlir
    %t = kgpu.fetched %buffer of %x[%r, %c] fill %zero : !kgpu.smem<1024xi8>, !in -> tensor<1x256xf32, #wide>
    ```
  }];
  let arguments = (ins Arg<Kgpu_SharedType, "", [MemRead]>:$buffer, Tile_ViewType:$view, Variadic<Index>:$offsets, Tile_Element:$fill);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $buffer `of` $view `[` $offsets `]` `fill` $fill attr-dict `:` qualified(type($buffer)) `,` qualified(type($view)) `->` type($result)
  }];
  let hasVerifier = 1;
}
