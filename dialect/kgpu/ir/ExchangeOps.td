// How the CTAs of a cluster tell each other small results without waiting for anything else.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_ExchangeInitOp : Kgpu_Op<"exchange_init", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "prepares the barriers of an exchange";
  let description = [{
    One barrier for each slot of the exchange's buffers. Stands in the kernel's outermost block, before a `kgpu.cluster_barrier`
    (`relaxed` is enough) that comes before the first exchange.

    ```mlir
    kgpu.exchange_init %barriers : !kgpu.smem<2xi64>
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$barriers);
  let assemblyFormat = "$barriers attr-dict `:` qualified(type($barriers))";
  let hasVerifier = 1;
}

def Kgpu_ExchangeOp : Kgpu_Op<"exchange", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "gives tiles to all CTAs of the cluster, and waits for those of the others";
  let description = [{
    Each element of `parts` is held by one warp of one CTA, in all of its lanes; it goes to its place in the buffer of every CTA. Each warp
    holds some. Afterwards the buffers, which are slots number `use` modulo slots, are complete in this CTA. Nobody waits for anything but those elements:
    other accesses to memory are in no order.

    Uses are counted from 0, and all threads of the cluster go through them in the same order. A buffer may be filled again while others
    still read what it had before, unless the thread that fills it has had a result of another exchange in between, or of this one in another slot. So
    an exchange in a loop needs two slots, or another exchange in the same loop (`kgpu-verify` checks that).

    ```mlir
    kgpu.exchange %partial to %slot signals %barriers[%use] : tensor<1x4xf32, #part> to !kgpu.smem<1x4xf32> signals !kgpu.smem<2xi64>
    ```
  }];
  let arguments = (ins Variadic<Tile_Tile>:$parts, Variadic<Kgpu_SharedType>:$buffers, Kgpu_SharedType:$barriers, I32:$use);
  let assemblyFormat = [{
    $parts `to` $buffers `signals` $barriers `[` $use `]` attr-dict
    `:` type($parts) `to` qualified(type($buffers)) `signals` qualified(type($barriers))
  }];
  let hasVerifier = 1;
}
