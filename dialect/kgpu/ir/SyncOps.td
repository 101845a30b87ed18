// Ops that synchronise threads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_BarrierOp : Kgpu_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for all threads of the CTA";
  let description = [{
    Earlier accesses to shared memory are complete for the whole CTA afterwards. All threads must reach the op together.

    ```mlir
    kgpu.barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_WarpBarrierOp : Kgpu_Op<"warp_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for all lanes of the warp";
  let description = [{
    Earlier accesses to shared memory are complete for the whole warp afterwards.

    ```mlir
    kgpu.warp_barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_ClusterBarrierOp : Kgpu_Op<"cluster_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for all threads of the cluster";
  let description = [{
    Earlier accesses to the shared memory of any CTA of the cluster are complete for the whole cluster afterwards. This
    does not hold with `relaxed`: the op then only waits for all threads to arrive, and not for loads in flight.

    ```mlir
    kgpu.cluster_barrier
    ```
  }];
  let arguments = (ins UnitAttr:$relaxed);
  let assemblyFormat = "(`relaxed` $relaxed^)? attr-dict";
}
