// Ops by which CTAs of a cluster exchange small results without waiting for other memory accesses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_ExchangeInitOp : Kgpu_Op<"exchange_init", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "initialises the mbarriers of an exchange";
  let description = [{
    There is one mbarrier for each slot of the exchange's buffers. The op stands in the kernel's outermost block, before
    a `kgpu.cluster_barrier` (`relaxed` is enough) that precedes the first exchange.

    ```mlir
    kgpu.exchange_init %barriers : !kgpu.smem<2xi64>
    ```
  }];
  let arguments = (ins Kgpu_SharedType:$barriers);
  let assemblyFormat = "$barriers attr-dict `:` qualified(type($barriers))";
  let hasVerifier = 1;
}

def Kgpu_ExchangeOp : Kgpu_Op<"exchange", [AttrSizedOperandSegments, MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "sends tiles to all CTAs of the cluster, and waits for those of the others";
  let description = [{
    One warp of one CTA holds each element of `parts`, in all of its lanes, and each warp holds some. Each element is
    written to the buffer of every CTA. Afterwards the buffers, which are the slots `use` modulo slots, are complete in
    this CTA. The op waits only for these elements: it does not order other memory accesses.

    Uses are counted from 0, and all threads of the cluster execute them in the same order. A thread may overwrite a
    buffer that others still read. It does not if it has received a result of another exchange since then, or of this
    exchange in another slot. So an exchange in a loop needs two slots, or another exchange in the same loop.
    `kgpu-verify` checks that.

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
