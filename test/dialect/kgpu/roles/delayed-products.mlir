// Checks a product of a tile that both warpgroups compute. They publish it to shared memory, and multiply it one
// iteration later. The TMA adds the results to memory.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-expand-add-stores --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-tensor-stores --kgpu-specialise-warps --kgpu-verify-schedule %s | FileCheck %s
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a --lower-nvvm %s | FileCheck %s --check-prefix=CODE
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-expand-add-stores --kgpu-schedule-tiles --kgpu-assign-layouts --canonicalize --cse --kgpu-tensor-stores --kgpu-specialise-warps --kgpu-verify-schedule '--remarks-filter=kgpu-specialise-warps' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] product of a computed tile one iteration later | Category:kgpu-specialise-warps | Function=shared | Remark="no warpgroup waits for the tile in the iteration that computes it"

// CHECK: tile.kernel @shared
// CHECK: %[[STAGING:.*]] = kgpu.alloc : !kgpu.smem<2x2x64x64xbf16
// CHECK: %[[SLOTS:.*]] = kgpu.alloc : !kgpu.smem<4x128x64xbf16
// CHECK: %[[RING:.*]] = kgpu.ring shared %{{.*}} : !kgpu.smem<2x4xi64> -> !kgpu.ring<4>
// CHECK: kgpu.roles producer_warp {
// CHECK-NOT: kgpu.publish_all
// CHECK-NOT: kgpu.tensor_store
// CHECK: } consumers {
// CHECK: scf.for
// CHECK: scf.for
// CHECK: scf.for %[[J:.*]] = %[[FIRST:.*]] to %[[END:.*]] step
// CHECK: kgpu.wgmma
// CHECK: kgpu.publish_all %{{.*}} to %[[OWN:.*]] signals %[[RING]][%[[USE:.*]]] : tensor<128x64xbf16
// Each warpgroup can read its own rows without waiting.
// CHECK: kgpu.wgmma %{{.*}}, %{{.*}}, %{{.*}} adds
// CHECK: %[[BEFORE:.*]] = arith.addi %[[USE]], %{{.*}} : i32
// CHECK: %[[SLOT:.*]] = kgpu.slot %[[SLOTS]]
// CHECK: %[[TURNED:.*]] = kgpu.transpose_buffer %[[SLOT]]
// CHECK: kgpu.await %[[RING]][%[[BEFORE]]]
// CHECK: %[[LATE:.*]] = kgpu.wgmma %[[TURNED]], %{{.*}} droppable
// CHECK: %[[DONE:.*]]:2 = kgpu.wgmma_wait 0 %{{.*}}, %[[LATE]]
// CHECK: kgpu.release
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[J]], %[[FIRST]] : index
// CHECK: scf.if %[[SOME]] {
// CHECK: kgpu.tensor_store adds %[[DONE]]#1, %arg3[%{{.*}}, %{{.*}}] map {{[0-9]+}} through %[[STAGING]]
// CHECK: scf.yield
// After the loop, the tile of the last iteration.
// CHECK: kgpu.await %[[RING]]
// CHECK: kgpu.wgmma {{.*}} droppable
// CHECK: %[[RAN:.*]] = arith.cmpi slt, %[[FIRST]], %[[END]] : index
// CHECK: scf.if %[[RAN]] {
// CHECK: kgpu.tensor_store adds

// CODE: nvvm.stmatrix {{.*}}<row>
// CODE: nvvm.fence.proxy
// Both operands are transposed; the previous contents of the accumulator do not matter.
// CODE: wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {{.*}}, 0, 1, 1, 1, 1;
// CODE: llvm.store {{.*}} : vector<2xf32>, !llvm.ptr<3>
// CODE: nvvm.cp.async.bulk.tensor.reduce
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
!sum = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
tile.kernel @shared(%a: !in, %b: !in, %d: !out, %z: !sum) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32>
  %none = arith.constant dense<0.0> : tensor<128x64xf32>
  %nothing = arith.constant dense<0.0> : tensor<64x128xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %a, 0 : !in
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  %tm = arith.ceildivsi %rows, %c64 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x128xbf16>
    %sum = scf.for %h = %c0 to %c2 step %c1 iter_args(%x0 = %zeros) -> tensor<128x128xf32> {
      %twice = arith.muli %i, %c2 : index
      %first = arith.addi %twice, %h : index
      %inner = scf.for %j = %first to %tm step %c1 iter_args(%x = %x0) -> tensor<128x128xf32> {
        %m = arith.muli %j, %c64 : index
        %q = tile.load %b[%m, %c0] fill %zero : !in -> tensor<64x128xbf16>
        %qt = tile.permute %q [1, 0] : tensor<64x128xbf16> -> tensor<128x64xbf16>
        %s = tile.dot %k, %qt, %none : tensor<128x128xbf16>, tensor<128x64xbf16>, tensor<128x64xf32>
        %p = arith.addf %s, %s : tensor<128x64xf32>
        %e = arith.truncf %p : tensor<128x64xf32> to tensor<128x64xbf16>
        %x1 = tile.dot %e, %q, %x : tensor<128x64xbf16>, tensor<64x128xbf16>, tensor<128x128xf32>
        %et = tile.permute %e [1, 0] : tensor<128x64xbf16> -> tensor<64x128xbf16>
        %y = tile.dot %et, %k, %nothing : tensor<64x128xbf16>, tensor<128x128xbf16>, tensor<64x128xf32>
        tile.add_store %y, %z[%m, %c0] : tensor<64x128xf32>, !sum
        scf.yield %x1 : tensor<128x128xf32>
      }
      scf.yield %inner : tensor<128x128xf32>
    }
    %narrow = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
    tile.store %narrow, %d[%n, %c0] : tensor<128x128xbf16>, !out
  }
  tile.return
}
