// Checks pairs of CTAs that take tiles in one column: each copies half of the columns that both read.
// RUN: kpkg-opt --pass-pipeline='builtin.module(tile.kernel(kgpu-schedule-tiles),canonicalize,cse)' %s | FileCheck %s --check-prefix=TILES
// RUN: kpkg-opt --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_90a})' %s | FileCheck %s
// RUN: kpkg-opt --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_90a})' %s | kpkg-opt --lower-nvvm | FileCheck %s --check-prefix=CODE
// RUN: kpkg-opt --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_90a})' '--remarks-filter=kgpu-multicast' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Missed] one copy for all blocks of a cluster | Category:kgpu-multicast | Function=product | Reason="the blocks of a cluster read different tiles of this operand"
// REMARK-DAG: [Passed] one copy for all blocks of a cluster | Category:kgpu-multicast | Function=product | Remark="each of 2 blocks copies a part to all"

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// Half as many rows, rounded up; a group has 8 pairs of rows.
// TILES-LABEL: tile.kernel @product
// TILES-DAG: %[[EIGHT:.*]] = arith.constant 8 : index
// TILES-DAG: %[[TWO:.*]] = arith.constant 2 : index
// TILES: %[[PAIRS:.*]] = arith.ceildivsi %{{.*}}, %[[TWO]] : index
// TILES: %[[FIRST:.*]] = kgpu.cluster_id
// TILES: %[[CTAS:.*]] = kgpu.cta_count
// TILES: %[[STEP:.*]] = arith.divui %[[CTAS]], %[[TWO]] : index
// TILES: scf.for %{{.*}} = %[[FIRST]] to %{{.*}} step %[[STEP]]
// TILES: arith.muli %{{.*}}, %[[EIGHT]] : index
// TILES: %[[PAIR:.*]] = arith.muli %{{.*}}, %[[TWO]] : index
// TILES: %[[RANK:.*]] = kgpu.cluster_rank
// TILES: arith.addi %[[PAIR]], %[[RANK]] : index

// Each CTA has its own left operand. The right operand lies in four panels of 64 columns. Each CTA copies half of the
// rows of each panel, before its own operand.
// CHECK: tile.kernel @product
// CHECK-SAME: #kgpu.launch<{{[^>]*}}cluster = 2
// CHECK-SAME: box = [128, 64]
// CHECK-SAME: box = [32, 64]
// CHECK: kgpu.ring cluster
// CHECK: kgpu.roles producer_warp
// CHECK: kgpu.acquire %{{.*}} bytes 49152
// CHECK: kgpu.tensor_load %arg1{{.*}} plus 0 signals {{.*}} multicast 0 :
// CHECK: kgpu.tensor_load %arg1{{.*}} plus 8192 signals {{.*}} multicast 0 :
// CHECK: kgpu.tensor_load %arg1{{.*}} plus 16384 signals {{.*}} multicast 0 :
// CHECK: kgpu.tensor_load %arg1{{.*}} plus 24576 signals {{.*}} multicast 0 :
// CHECK: kgpu.tensor_load %arg0{{.*}} plus 0 signals %{{[0-9a-z_]+}}[%{{[0-9a-z_]+}}] :

// Two warpgroups of each of two CTAs release each slot: one thread signals the other CTA, and one the own CTA. The
// final wait for the other CTA need not be done by a whole warp.
// CODE-LABEL: llvm.func @product
// CODE-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
// CODE-DAG: %[[BYTES:.*]] = llvm.mlir.constant(49152 : i32) : i32
// CODE-DAG: %[[ARRIVALS_4:.*]] = llvm.mlir.constant(4 : i32) : i32
// CODE-DAG: %[[ARRIVALS_1:.*]] = llvm.mlir.constant(1 : i32) : i32
// CODE: nvvm.mbarrier.init %{{.*}}, %[[ARRIVALS_1]]
// CODE: nvvm.mbarrier.init %{{.*}}, %[[ARRIVALS_4]]
// CODE: nvvm.fence.mbarrier.init
// CODE: nvvm.cluster.arrive.relaxed
// CODE: nvvm.cluster.wait
// CODE: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CODE-COUNT-4: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}} multicast_mask =
// CODE: nvvm.cp.async.bulk.tensor.shared.cluster.global
// CODE: nvvm.cluster.arrive.relaxed
// CODE-NEXT: nvvm.cluster.wait
// CODE: wgmma.mma_async
// CODE: nvvm.mapa
// CODE: mbarrier.arrive.shared::cluster.b64 _, [$0];
// CODE: mbarrier.arrive.shared::cta.b64 _, [$0];
// CODE: nvvm.cp.async.bulk.wait_group 0
// CODE: nvvm.cluster.arrive.relaxed
// CODE-NEXT: nvvm.cluster.wait
tile.kernel @product(%a: !in, %b: !in, %d: !out)
    attributes {kgpu.launch = #kgpu.launch<threads = 384, cluster = 2, consumers = 2>, kgpu.target = #kgpu.target<"sm_90a">, schedule = #tile.schedule<cluster = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x256xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c256 = arith.constant 256 : index
  %rows = tile.dim %d, 0 : !out
  %columns = tile.dim %d, 1 : !out
  %depth = tile.dim %a, 1 : !in
  %tm = arith.ceildivsi %rows, %c128 : index
  %tn = arith.ceildivsi %columns, %c256 : index
  %tk = arith.ceildivsi %depth, %c64 : index
  tile.for_tiles (%i, %j) to (%tm, %tn) {
    %m = arith.muli %i, %c128 : index
    %n = arith.muli %j, %c256 : index
    %sum = scf.for %s = %c0 to %tk step %c1 iter_args(%acc = %zeros) -> tensor<128x256xf32> {
      %k = arith.muli %s, %c64 : index
      %x = tile.load %a[%m, %k] fill %zero : !in -> tensor<128x64xbf16>
      %y = tile.load %b[%k, %n] fill %zero : !in -> tensor<64x256xbf16>
      %p = tile.dot %x, %y, %acc : tensor<128x64xbf16>, tensor<64x256xbf16>, tensor<128x256xf32>
      scf.yield %p : tensor<128x256xf32>
    }
    %r = arith.truncf %sum : tensor<128x256xf32> to tensor<128x256xbf16>
    tile.store %r, %d[%m, %n] : tensor<128x256xbf16>, !out
  }
  tile.return
}
