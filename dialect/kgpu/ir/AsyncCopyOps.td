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
