// Asynchronous copies from global to shared memory, which need no registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_AsyncCopyOp : Kgpu_SharedOp<"async_copy", [AttrSizedOperandSegments]> {
  let summary = "starts an asynchronous copy of a tile of a view into a buffer";
  let description = [{
    Each thread copies its elements of `layout`, in vectors of 4, 8 or 16 bytes. Elements outside of the view become
    zero, and all elements where `inside` is false. In a loop, no thread may read the buffer before the loop's next
    iteration.

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
  let summary = "starts an asynchronous copy of pieces of gathered rows into a buffer";
  let description = [{
    `indices` are the coordinates of a gather of rows (tile::rowGather), one tile for each dimension of the view. All
    have the same layout. Each thread copies its elements of that layout, in vectors of 4, 8 or 16 bytes. Elements
    outside of the view become zero, and all elements where `inside` is false. In a loop, no thread may read the buffer
    before the loop's next iteration.

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
  let summary = "groups all copies since the previous kgpu.async_commit";
  let description = [{
    ```mlir
    kgpu.async_commit
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_AsyncWaitOp : Kgpu_Op<"async_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until all but the latest `pending` groups of copies are complete";
  let description = [{
    The wait covers only copies of the same thread. Copies of other threads are visible after a barrier.

    ```mlir
    kgpu.async_wait 2
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def Kgpu_FetchOp : Kgpu_SharedOp<"fetch"> {
  let summary = "starts an asynchronous copy of a tile to shared memory; each thread copies its own elements";
  let description = [{
    Each thread copies its elements of `tile` to its own part of the buffer, in vectors of 4, 8 or 16 bytes. The vectors
    of adjacent threads are contiguous, and the buffer has as many bytes as all threads copy. Elements outside of the
    view become zero, and all elements where `inside` is false.

    The copy is completed by `kgpu.async_commit` and `kgpu.async_wait`, as for `kgpu.async_copy`, but needs no barrier.
    It may overwrite elements that the thread has read with `kgpu.fetched` before.

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
  let summary = "prefetches a tile of a row into the L2 cache";
  let description = [{
    The view has one dimension, of unit stride. Nothing is prefetched where `inside` is false, or outside of the view.

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
  let summary = "reads the tile that the thread has fetched";
  let description = [{
    Returns the tile of `view` at `offsets`, with `fill` for elements outside of the view, as `tile.load` does. The
    latest `kgpu.fetch` to this buffer must have fetched the same tile, and must be complete.

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
