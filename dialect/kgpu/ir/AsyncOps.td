// What runs by itself: rings of buffers that copies fill and products read, and the roles of warps around them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_CtaIdOp : Kgpu_Op<"cta_id", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "number of this CTA in the grid, along x";
  let description = [{
    ```mlir
    %t = kgpu.cta_id
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Kgpu_CtaCountOp : Kgpu_Op<"cta_count", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "CTAs of the grid, along x";
  let description = [{
    ```mlir
    %t = kgpu.cta_count
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Kgpu_ClusterIdOp : Kgpu_Op<"cluster_id", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "number of this CTA's cluster in the grid, along x";
  let description = [{
    ```mlir
    %t = kgpu.cluster_id
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Kgpu_ClusterRankOp : Kgpu_Op<"cluster_rank", [Pure, DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>]> {
  let summary = "number of this CTA in its cluster";
  let description = [{
    ```mlir
    %t = kgpu.cluster_rank
    ```
  }];
  let results = (outs Index:$result);
  let assemblyFormat = "attr-dict";
}

def Kgpu_RolesOp : Kgpu_Op<"roles", [RecursiveMemoryEffects, NoTerminator, NoRegionArguments]> {
  let summary = "programs side by side: one thread loads, the others compute";
  let description = [{
    `producer_warp` is run by one thread of a warp of its own, `consumers` by the warpgroups that `kgpu.consumers` counts, and `producers`, where it is there, by a
    warpgroup that makes what products of `consumers` read. They meet only at
    rings. Within `consumers` the threads are those that layouts speak of, and `kgpu.barrier` is among them. Within `producers` tiles have layouts of which every warpgroup has
    a copy, and there are no barriers. It is the last op of its kernel.

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
  let summary = "slots that are filled and emptied in turn";
  let description = [{
    Uses are counted from 0; use n takes slot n mod `slots`. Its barriers lie in `barriers`, full ones before empty ones. For each use, in
    order: the loading thread acquires, copies signal, every warpgroup of `consumers` awaits, reads, and releases.

    Slots of a `shared` ring are filled by the warpgroups of `consumers` themselves (`kgpu.publish_all`). Nobody releases them: a warpgroup that shares
    use n has awaited use n - 1 - d before, in the iteration before; every other one has then ended the iteration before that, and with it what
    it reads of use n - 2 - 2 * d, which is why there are 2 + 2 * d slots.

    CTAs of the cluster fill slots of a `cluster` ring for each other. They all use it as often, in the same order, and a slot is empty once the
    warpgroups of all of them have released it. No CTA begins its roles before the barriers of all are there, or ends before all have ended theirs.

    A `channel` hands numbers from the loading thread to all warps of `consumers` (`kgpu.publish_index`, `kgpu.consume_index`): behind its barriers lie its slots, of
    eight bytes each. A slot is empty once every one of these warps has read it.

    Slots of a `published` ring are filled by the warpgroup of `producers` (`kgpu.publish`) with a tile each, for the warps of `consumers`.

    ```mlir
    %t = kgpu.ring %barriers : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$barriers, UnitAttr:$shared, UnitAttr:$cluster, UnitAttr:$channel, UnitAttr:$published);
  let results = (outs Kgpu_RingType:$result);
  let assemblyFormat = "(`shared` $shared^)? (`cluster` $cluster^)? (`channel` $channel^)? (`published` $published^)? $barriers attr-dict `:` qualified(type($barriers)) `->` qualified(type($result))";
  let hasVerifier = 1;
}

class Kgpu_RingUseOp<string mnemonic> : Kgpu_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]>;

def Kgpu_AcquireOp : Kgpu_RingUseOp<"acquire"> {
  let summary = "waits until the slot of a use is empty, and says how much will fill it";
  let description = [{
    `bytes` are those of all copies that signal this use.

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
  let summary = "says that this warpgroup does not need the slot of a use any more";
  let description = [{
    What read the slot has finished: a product has been waited for.

    ```mlir
    kgpu.release %ring[%use] : !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Kgpu_RingType:$ring, I32:$use);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

def Kgpu_PublishAllOp : Kgpu_RingUseOp<"publish_all"> {
  let summary = "writes a tile to the slot of a use, for products of all warpgroups";
  let description = [{
    Each warpgroup writes its rows of an accumulator's layout. What it wrote is there for all once they have awaited the use.

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
  let summary = "writes a tile to the slot of a use, for the warpgroups of `consumers`";
  let description = [{
    Waits until the slot of the use is empty. What is written is there for products and loads of those who have awaited the use.

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
  let summary = "number of the next tile that no CTA of this launch has";
  let description = [{
    CTA i has tile i to begin with, where there is one. Numbers from the count of CTAs on are given out in turn; a CTA that gets one that is not
    below `count` takes no further one. Each launch so takes `count` numbers in all, of which the last one sets the counter back to where it
    began. One thread takes it. Numbers are below 2^31.

    ```mlir
    %next = kgpu.next_tile of %count
    ```
  }];
  let arguments = (ins Index:$count);
  let results = (outs Index:$result);
  let assemblyFormat = "`of` $count attr-dict";
}

def Kgpu_PublishIndexOp : Kgpu_RingUseOp<"publish_index"> {
  let summary = "hands a number to all warps that compute";
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
  let summary = "the number that a use of a channel brings";
  let description = [{
    Every warp waits for it by itself, and leaves the slot.

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
  let summary = "waits until it is this warpgroup's turn to start products";
  let description = [{
    Turns go round the warpgroups that compute, from the first one. Each takes as many turns as the others, and passes each one on.

    ```mlir
    kgpu.ping_pong_wait
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_PingPongSignalOp : Kgpu_Op<"ping_pong_signal", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "gives the turn to the next warpgroup";
  let description = [{
    ```mlir
    kgpu.ping_pong_signal
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_Im2colLoadOp : Kgpu_Op<"im2col_load", [AttrSizedOperandSegments]> {
  let summary = "loads channels of pixels on which windows lie";
  let description = [{
    Row r of the result is the piece of channels of the r-th pixel from that at `offsets` on, in the order of `window`, moved by `taps` along the
    extents. `offsets` are coordinates in the view, of the image, of each extent and of the channel. Zero where that is outside of the view.

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
  let summary = "starts a copy of a part of a view to shared memory that signals a use of a ring when it is done";
  let description = [{
    Uses the tensor map `map` of the kernel, whose argument `view` is: the box at `offsets`, one for each of the view's dimensions. Places
    outside of the view are filled with zeros. One thread starts it. By the map of a window it copies from the pixel at `offsets` on, moved by `taps`.

    With `multicast` d, the box is one of as many as the cluster has CTAs, which all need all of them: the CTA of rank r copies the one that lies r
    boxes further on along dimension d. It goes as much further on in the buffers of all of these CTAs, and signals the use of each of them.

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
  let summary = "makes rows of a filled slot zero that are not part of what was to be loaded";
  let description = [{
    Rows lie in panels of 128 bytes, as operands of products; those before `begin` and from `end` on become zero, for products that this
    warpgroup starts afterwards. Every warpgroup that reads the slot does it, between `kgpu.await` and its first product, or awaits what one that did it
    published afterwards. Nothing is done, and nothing waited for, where all rows lie between the two.

    ```mlir
    kgpu.clear_outside %b from %m to %n : !right
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$buffer, Index:$begin, Index:$end);
  let assemblyFormat = "$buffer `from` $begin `to` $end attr-dict `:` qualified(type($buffer))";
  let hasVerifier = 1;
}

def Kgpu_TensorStoreOp : Kgpu_Op<"tensor_store", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "copies a tile to a part of a view by the tensor map, through shared memory";
  let description = [{
    Uses the tensor map `map` of the kernel, whose argument `view` is. Each warpgroup writes its rows panel by panel to its buffers of
    `staging` in turn and starts copies from there, which may still run when the op is done. Places outside of the view are left out.
    `staging` has the shape of warpgroups, buffers, 64 rows, columns of a panel of 128, 64 or 32 bytes, of whatever type; nothing but such ops uses it.
    With `adds`, elements of f32 are added to those of the view, in any order with what others add.

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
  let summary = "starts a matrix product of operands in shared memory, by warpgroups";
  let description = [{
    result = lhs @ rhs, plus `accumulator` where `adds` is true; where it is false, what the accumulator holds does not matter. Of a right operand
    with more columns than the result the first ones count. A left operand may also be one panel of 64 rows of 64 bytes (64-byte swizzle); its columns then meet the rows
    of the right operand `from` a multiple of their number. Other operands
    lie in panels of 128 bytes as TMA's 128-byte swizzle leaves them, along either dimension where elements have 16 bits, else along what is
    summed over. Elements are bf16, f16, f8E4M3FN, f8E5M2 or f32, which counts as tf32, into f32; or i8 into i32. The layout of the accumulator is
    `wgmmaAccumulator` (async/WgmmaLayout.h); the left operand may be a tile in the layout `wgmmaLeftOperand` too. The result, and the operands, must not be
    touched until `kgpu.wgmma_wait` gave it. With `positions`, the left operand, in shared memory, has two of every four elements of bf16 or f16, as
    tile.dot says; they are in the layout `wgmmaPositions`. Of a `droppable` product operands may be there or not, as in the first iteration of a loop that reads
    what the one before shared: nothing then depends on its result.

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
  let summary = "a place that instructions behind it do not come before";
  let description = [{
    The use has been awaited and is not released, so nothing is waited for. ptxas moves waits for products up as far as the code before them lets
    it, but not beyond this.

    ```mlir
    kgpu.scheduling_fence %ring[%use] : !kgpu.ring<4>
    ```
  }];
  let arguments = (ins Kgpu_RingType:$ring, I32:$use);
  let assemblyFormat = "$ring `[` $use `]` attr-dict `:` qualified(type($ring))";
}

def Kgpu_WgmmaWaitOp : Kgpu_Op<"wgmma_wait", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until all but the latest products of this warpgroup are done";
  let description = [{
    At most `pending` products are still running afterwards; `values` are the results of those that are done.

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
