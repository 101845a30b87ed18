// Ops of warp specialisation: roles of warps, ring buffers between them, TMA copies and asynchronous products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_CtaIdOp : Kgpu_Op<"cta_id", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "index of this CTA in the grid, along x";
  let description = [{
    ```mlir
    %t = kgpu.cta_id
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Kgpu_CtaCountOp : Kgpu_Op<"cta_count", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "number of CTAs in the grid, along x";
  let description = [{
    ```mlir
    %t = kgpu.cta_count
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Kgpu_ClusterIdOp : Kgpu_Op<"cluster_id", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "index of this CTA's cluster in the grid, along x";
  let description = [{
    ```mlir
    %t = kgpu.cluster_id
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Kgpu_ClusterRankOp : Kgpu_Op<"cluster_rank", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "index of this CTA in its cluster";
  let description = [{
    ```mlir
    %t = kgpu.cluster_rank
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Kgpu_RolesOp : Kgpu_Op<"roles", [RecursiveMemoryEffects, NoTerminator, NoRegionArguments]> {
  let summary = "runs the roles of a warp-specialised kernel concurrently";
  let description = [{
    One thread of the producer warp runs `producer_warp`. The consumer warpgroups, as many as `consumers` says, run
    `consumers`. If there are `producers`, a producer warpgroup runs them and computes operands of the consumers'
    products.

    Roles synchronise only by rings. Layouts in `consumers` describe the consumers' threads, and `kgpu.barrier` is among
    them. Tiles in `producers` have layouts of which every warpgroup holds a copy, and there are no barriers. The op is
    the last one of its kernel.

    ```mlir
    kgpu.roles producer_warp {
      kgpu.acquire %ring[%use] bytes 8192 : !kgpu.ring<4>
    } consumers {
      kgpu.await %ring[%use] : !kgpu.ring<4>
      kgpu.release %ring[%use] : !kgpu.ring<4>
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$producer_warp, SizedRegion<1>:$consumers, AnyRegion:$producers);
  let assemblyFormat = "attr-dict-with-keyword `producer_warp` $producer_warp `consumers` $consumers (`producers` $producers^)?";
  let hasVerifier = 1;
}

def Kgpu_RingOp : Kgpu_Op<"ring", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "a ring buffer of slots, each with a full and an empty mbarrier";
  let description = [{
    Uses are counted from 0; use n takes slot n mod `slots`. The mbarriers lie in `barriers`, full ones before empty
    ones. `kind` tells who fills the slots.

    In each use of a `copied` ring, the producer warp acquires the slot and copies signal it. Then every consumer
    warpgroup awaits, reads and releases it.

    The consumer warpgroups fill slots of a `shared` ring themselves (`kgpu.publish_all`), and nobody releases them. Let
    a use be awaited in the iteration that publishes it, or d iterations later. A warpgroup that publishes use n has
    awaited use n - 1 - d in the iteration before. Every other warpgroup has then finished the iteration before that,
    and its reads of use n - 2 - 2 * d. So the ring needs 2 + 2 * d slots.

    CTAs of a cluster multicast into slots of a `cluster` ring. They all use it equally often, in the same order. A slot
    is empty when the warpgroups of all CTAs have released it. No CTA begins its roles before the mbarriers of all CTAs
    exist, or exits before all CTAs have finished their roles.

    A `channel` passes numbers from the producer warp to all warps of `consumers` (`kgpu.publish_index`,
    `kgpu.consume_index`). Its slots, of eight bytes each, follow its mbarriers. A slot is empty when every one of these
    warps has read it.

    The producer warpgroup fills each slot of a `published` ring with a tile for the consumers (`kgpu.publish`).

    ```mlir
    %t = kgpu.ring %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$barriers, DefaultValuedAttr<Kgpu_RingKind, "::kpkg::kgpu::RingKind::Copied">:$kind);
  let results = (outs Kgpu_RingType:$result);
  let assemblyFormat = "($kind^)? $barriers attr-dict `:` qualified(type($barriers)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

class Kgpu_RingUseOp<string mnemonic> : Kgpu_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]>;

def Kgpu_AcquireOp : Kgpu_RingUseOp<"acquire"> {
  let summary = "waits until the slot of a use is empty, and announces the bytes that copies will bring";
  let description = [{
    `bytes` is the sum over all copies that signal this use.

    ```mlir
    kgpu.acquire %ring[%use] bytes 32768 : !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Kgpu_RingType:$ring, I32:$use, ConfinedAttr<I64Attr, [IntPositive]>:$bytes);
  let assemblyFormat = "$ring `[` $use `]` `bytes` $bytes attr-dict `:` qualified(type($ring))";
}

def Kgpu_AwaitOp : Kgpu_RingUseOp<"await"> {
  let summary = "waits until the slot of a use is full";
  let description = [{
    ```mlir
    kgpu.await %ring[%use] : !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Kgpu_RingType:$ring, I32:$use);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

def Kgpu_ReleaseOp : Kgpu_RingUseOp<"release"> {
  let summary = "signals that this warpgroup does not need the slot of a use any more";
  let description = [{
    All reads of the slot must be complete: a product that reads it has been waited for.

    ```mlir
    kgpu.release %ring[%use] : !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Kgpu_RingType:$ring, I32:$use);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

def Kgpu_PublishAllOp : Kgpu_RingUseOp<"publish_all"> {
  let summary = "writes a tile to the slot of a use, for products of all consumer warpgroups";
  let description = [{
    Each warpgroup writes its rows, in the layout of an accumulator. The whole tile is visible to a warpgroup that has
    awaited the use.

    ```mlir
    kgpu.publish_all %tile to %b signals %ring[%use] : tensor<64x128xbf16, #acc>, !right, !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Kgpu_SharedType:$buffer, Kgpu_RingType:$ring, I32:$use);
  let assemblyFormat = [{
    $value `to` $buffer `signals` $ring `[` $use `]` attr-dict `:` type($value) `,` qualified(type($buffer)) `,` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Kgpu_PublishOp : Kgpu_RingUseOp<"publish"> {
  let summary = "writes a tile to the slot of a use, for the consumer warpgroups";
  let description = [{
    Waits until the slot of the use is empty. Products and loads of warpgroups that have awaited the use can read the
    tile.

    ```mlir
    kgpu.publish %tile to %b signals %tiles[%use] : tensor<64x128xbf16, #acc>, !right, !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Kgpu_SharedType:$buffer, Kgpu_RingType:$ring, I32:$use);
  let assemblyFormat = [{
    $value `to` $buffer `signals` $ring `[` $use `]` attr-dict `:` type($value) `,` qualified(type($buffer)) `,` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Kgpu_NextTileOp : Kgpu_Op<"next_tile", [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "takes the next tile of the launch from the atomic counter";
  let description = [{
    CTA i starts with tile i, if it exists. The counter hands out the numbers from the CTA count on. A CTA that gets a
    number not below `count` takes no further one. So each launch takes `count` numbers in all, and the last one resets
    the counter to its start. One thread executes the op. Numbers are below 2^31.

    ```mlir
    %next = kgpu.next_tile of %count
    ```
  }];
  let arguments = (ins Index:$count);
  let results = (outs Index:$result);
  let assemblyFormat = "`of` $count attr-dict";
}

def Kgpu_PublishIndexOp : Kgpu_RingUseOp<"publish_index"> {
  let summary = "publishes a number to all warps of the consumers";
  let description = [{
    Waits until the slot of the use is empty.

    ```mlir
    kgpu.publish_index %next to %channel[%use] : !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Index:$number, Kgpu_RingType:$ring, I32:$use);
  let assemblyFormat = "$number `to` $ring `[` $use `]` attr-dict `:` qualified(type($ring))";
  let hasVerifier = 1;
}

def Kgpu_ConsumeIndexOp : Kgpu_Op<"consume_index", [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "consumes the number that a use of a channel publishes";
  let description = [{
    Every warp waits for the number by itself, and releases the slot.

    ```mlir
    %next = kgpu.consume_index %channel[%use] : !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Kgpu_RingType:$ring, I32:$use);
  let results = (outs Index:$result);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
  let hasVerifier = 1;
}

def Kgpu_PingPongWaitOp : Kgpu_Op<"ping_pong_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for this warpgroup's turn to start products";
  let description = [{
    Turns go round the consumer warpgroups, from the first one. All warpgroups take equally many turns, and pass each
    one on.

    ```mlir
    kgpu.ping_pong_wait
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_PingPongSignalOp : Kgpu_Op<"ping_pong_signal", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "passes the turn to the next warpgroup";
  let description = [{
    ```mlir
    kgpu.ping_pong_signal
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_Im2colLoadOp : Kgpu_Op<"im2col_load", [AttrSizedOperandSegments]> {
  let summary = "loads channels of the pixels that a sliding window covers (im2col)";
  let description = [{
    Row r of the result holds channels of the r-th pixel, counted from the one at `offsets` in the order of `window`.
    The pixel is moved by `taps` along the extents. `offsets` are coordinates in the view: of the image, of each extent
    and of the channel. Elements outside of the view are zero.

    ```mlir
    %t = kgpu.im2col_load %x[%batch, %m, %k] in #kgpu.window<counts = [2], strides = [3], starts = [4], steps = [5], taps = [0, 0]> moved [%n]
         : !in -> tensor<128x64xbf16>
    ```
  }];
  let arguments = (ins Arg<Tile_ViewType, "", [MemRead]>:$view, Variadic<Index>:$offsets, Variadic<Index>:$taps, Kgpu_WindowAttr:$window);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $view `[` $offsets `]` `in` qualified($window) `moved` `[` $taps `]` attr-dict `:` qualified(type($view)) `->` type($result)
  }];
  let hasVerifier = 1;
}

def Kgpu_TensorLoadOp : Kgpu_Op<"tensor_load", [MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "starts a TMA copy of a box to shared memory, which signals a use of a ring when complete";
  let description = [{
    Copies the box at `offsets`, one offset for each dimension of `view`, by the kernel's tensor map `map`. The map
    describes the kernel argument `view`. Elements outside of the view are filled with zeros. One thread executes the
    op. With a map of a window, it copies from the pixel at `offsets` on, moved by `taps`.

    With `multicast` d, every CTA of the cluster copies one box, and all CTAs receive all boxes. The CTA of rank r
    copies the box that lies r boxes further along dimension d. It is written r boxes further in the buffers of all
    CTAs, and it signals the use in each of them.

    ```mlir
    kgpu.tensor_load %x[%batch, %m, %k] map 0 to %a plus 0 signals %ring[%use] : !in, !left, !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Tile_ViewType:$view, Variadic<Index>:$offsets, Variadic<Index>:$taps, ConfinedAttr<I64Attr, [IntNonNegative]>:$map,
                       Kgpu_SharedType:$buffer, ConfinedAttr<I64Attr, [IntNonNegative]>:$distance, Kgpu_RingType:$ring, I32:$use,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$multicast);
  let assemblyFormat = [{
    $view `[` $offsets `]` (`moved` `[` $taps^ `]`)? `map` $map `to` $buffer `plus` $distance `signals` $ring `[` $use `]`
    (`multicast` $multicast^)? attr-dict
    `:` qualified(type($view)) `,` qualified(type($buffer)) `,` qualified(type($ring))
  }];
  let hasVerifier = 1;
}

def Kgpu_ClearOutsideOp : Kgpu_Op<"clear_outside", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "clears rows of a full slot that lie outside of the slice to be loaded";
  let description = [{
    Rows lie in panels of 128 bytes, as operands of products do. Rows before `begin` and from `end` on become zero for
    products that this warpgroup starts afterwards. Every warpgroup that reads the slot executes the op between
    `kgpu.await` and its first product. Otherwise it awaits a tile that such a warpgroup published afterwards. The op
    does nothing, and waits for nothing, if all rows lie in the range.

    ```mlir
    kgpu.clear_outside %b from %m to %n : !right
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$buffer, Index:$begin, Index:$end);
  let assemblyFormat = "$buffer `from` $begin `to` $end attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Kgpu_TensorStoreOp : Kgpu_Op<"tensor_store", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "stores a tile to a box of a view by a tensor map, through shared memory";
  let description = [{
    Uses the kernel's tensor map `map`, which describes the kernel argument `view`. Each warpgroup writes its rows panel
    by panel to its buffers in `staging`, in turn, and starts copies from there. Copies may still run when the op ends.
    Elements outside of the view are not written.

    The shape of `staging` is warpgroups x buffers x 64 rows x columns of a panel. A panel has rows of 128, 64 or 32
    bytes, of any element type. Only such ops use the buffer. With `adds`, f32 elements are added to those of the view,
    in any order with other additions.

    ```mlir
    kgpu.tensor_store %tile, %y[%batch, %m, %n] map 1 through %staging : tensor<64x128xbf16, #acc>, !out, !buffers
    ```
  }];
  let arguments = (ins Tile_Tile:$value, Tile_ViewType:$view, Variadic<Index>:$offsets,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$map, Kgpu_SharedType:$staging, UnitAttr:$adds);
  let assemblyFormat = [{
    (`adds` $adds^)? $value `,` $view `[` $offsets `]` `map` $map `through` $staging attr-dict
    `:` type($value) `,` qualified(type($view)) `,` qualified(type($staging))
  }];
  let hasVerifier = 1;
}

def Kgpu_WgmmaOp : Kgpu_Op<"wgmma", [MemoryEffects<[MemRead]>, AllTypesMatch<["accumulator", "result"]>]> {
  let summary = "starts an asynchronous matrix product (wgmma) with operands in shared memory";
  let description = [{
    Computes result = lhs @ rhs, plus `accumulator` where `adds` is true. Where `adds` is false, the accumulator's
    contents do not matter. If the right operand has more columns than the result, its first columns count.

    Operands lie in panels of 128 bytes, in the TMA's 128-byte swizzle. Elements of 16 bits may be contiguous along
    either dimension, others must be contiguous along K. A left operand may also be one panel of 64 rows of 64 bytes
    (64-byte swizzle). Its columns are multiplied by rows of the right operand, `from` a multiple of their number on.

    Elements are bf16, f16, f8E4M3FN, f8E5M2, or f32, which counts as tf32, into f32; or i8 into i32. The accumulator
    has the layout `wgmmaAccumulator` (analysis/WgmmaLayout.h). The left operand may also be a tile in the layout
    `wgmmaLeftOperand`. The result and the operands must not be used before `kgpu.wgmma_wait`.

    With `positions`, in the layout `wgmmaPositions`, the left operand has 2:4 sparsity as in tile.dot. It lies in
    shared memory and has elements of bf16 or f16. The operands of a `droppable` product may be absent, as in the first
    iteration of a loop that reads tiles of the previous iteration. Nothing depends on its result then.

    ```mlir
    %t = kgpu.wgmma %a, %b, %c adds %some : !left, !right, tensor<64x128xf32, #acc>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Kgpu_SharedType, Tile_Tile]>:$lhs, Kgpu_SharedType:$rhs, Tile_Tile:$accumulator, I1:$adds,
                       Optional<Tile_Tile>:$positions, UnitAttr:$droppable, DefaultValuedOptionalAttr<I64Attr, "0">:$row);
  let results = (outs Tile_Tile:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs (`from` $row^)? `,` $accumulator `adds` $adds (`at` $positions^)? (`droppable` $droppable^)? attr-dict
    `:` qualified(type($lhs)) `,` qualified(type($rhs)) `,` type($accumulator) (`,` type($positions)^)?
  }];
  let hasVerifier = 1;
}

def Kgpu_SchedulingFenceOp : Kgpu_RingUseOp<"scheduling_fence"> {
  let summary = "keeps the assembler from moving later instructions above this place";
  let description = [{
    The use has been awaited and is not released, so the op waits for nothing. The assembler ptxas moves waits for
    products up as far as preceding code permits, but not above this op.

    ```mlir
    kgpu.scheduling_fence %ring[%use] : !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Kgpu_RingType:$ring, I32:$use);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

def Kgpu_WgmmaWaitOp : Kgpu_Op<"wgmma_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until at most `pending` products of this warpgroup are in flight";
  let description = [{
    `values` are the products' results that are complete after the wait. The latest `pending` products may still run.

    ```mlir
    %t = kgpu.wgmma_wait 0 %d : tensor<64x128xf32, #acc> -> tensor<64x128xf32, #acc>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$pending, Variadic<Tile_Tile>:$values);
  let results = (outs Variadic<Tile_Tile>:$results);
  let assemblyFormat = "$pending $values attr-dict `:` type($values) `->` type($results)";
  let builders = [OpBuilder<(ins "int64_t":$pending, "::mlir::ValueRange":$values)>];
  let hasVerifier = 1;
}
