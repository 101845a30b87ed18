// Who waits for whom.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

def Kgpu_BarrierOp : Kgpu_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all threads of the CTA wait for each other";
  let description = [{
    Accesses to shared memory before it are done for the whole CTA. All threads reach it together.

    ```mlir
    kgpu.barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_WarpBarrierOp : Kgpu_Op<"warp_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all lanes of a warp wait for each other";
  let description = [{
    Accesses to shared memory before it are done for the whole warp.

    ```mlir
    kgpu.warp_barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Kgpu_ClusterBarrierOp : Kgpu_Op<"cluster_barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "all threads of the cluster wait for each other";
  let description = [{
    Accesses to the shared memory of any CTA of the cluster before it are done for the whole cluster. With `relaxed` they need not be: it only
    tells that all threads have come so far, and does not wait for loads that are on their way.

    ```mlir
    kgpu.cluster_barrier
    ```
  }];
  let arguments = (ins UnitAttr:$relaxed);
  let assemblyFormat = "(`relaxed` $relaxed^)? attr-dict";
}
