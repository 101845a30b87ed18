// Checks that loads of later iterations are in flight to shared memory, for each thread its own elements.
// RUN: kpkg-opt --kgpu-ring-loads --split-input-file %s | FileCheck %s
// RUN: kpkg-opt --kgpu-ring-loads --kgpu-alloc-smem --kgpu-insert-barriers --lower-nvvm --split-input-file %s | FileCheck %s --check-prefix=CODE
// RUN: kpkg-opt --kgpu-ring-loads --split-input-file '--remarks-filter=kgpu-ring-loads' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] loads of later iterations in flight | Category:kgpu-ring-loads | Function=two | Remark="through shared memory, 2 iterations ahead"
// REMARK-DAG: [Missed] loads of later iterations in flight | Category:kgpu-ring-loads | Function=two | Reason="every iteration loads the same"
// REMARK-DAG: [Passed] loads of later iterations in flight | Category:kgpu-ring-loads | Function=one | Remark="through shared memory, 1 iteration ahead"
// REMARK-DAG: [Missed] loads of later iterations in flight | Category:kgpu-ring-loads | Function=one | Reason="the tensor's address, strides or dimension of stride 1 are not known to permit copies of four bytes"

#row = #kgpu.layout<"reg 1:1-4 1:2048 lane 1:8-128 warp 1:256-1024 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: tile.kernel @two
// CHECK: %[[RING:.*]] = kgpu.alloc : !kgpu.smem<2x8192xi8>
// CHECK: %[[IN0:.*]] = arith.cmpi slt, %[[FIRST:.*]], %arg2
// CHECK: %[[SLOT0:.*]] = kgpu.slot %[[RING]][%c0
// CHECK: kgpu.fetch %arg0[%[[FIRST]], %c0{{.*}}] of tensor<1x4096xbf16, #{{.*}}> if %[[IN0]] to %[[SLOT0]]
// CHECK-NEXT: kgpu.async_commit
// CHECK: %[[SLOT1:.*]] = kgpu.slot %[[RING]][%c1
// CHECK: kgpu.fetch {{.*}} to %[[SLOT1]]
// CHECK-NEXT: kgpu.async_commit
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %arg2 step %[[STEP:.*]] iter_args(%[[AT:.*]] = %c0
// CHECK-NEXT: kgpu.async_wait 1
// CHECK: %[[SLOT:.*]] = kgpu.slot %[[RING]][%[[AT]]]
// CHECK: %[[V:.*]] = kgpu.fetched %[[SLOT]] of %arg0[%[[I]], %c0{{.*}}] fill %{{.*}} -> tensor<1x4096xbf16
// CHECK: %[[AHEAD:.*]] = arith.muli %[[STEP]], %c2
// CHECK: %[[J:.*]] = arith.addi %[[I]], %[[AHEAD]]
// CHECK: %[[IN:.*]] = arith.cmpi slt, %[[J]], %arg2
// CHECK: %[[SAME:.*]] = kgpu.slot %[[RING]][%[[AT]]]
// CHECK: kgpu.fetch %arg0[%[[J]], %c0{{.*}}] of {{.*}} if %[[IN]] to %[[SAME]]
// CHECK-NEXT: kgpu.async_commit
// Loads that every iteration repeats stay.
// CHECK: tile.load %arg0[%c0{{.*}}, %c0{{.*}}]
// CHECK: tile.store %{{.*}}
// CHECK: }
// CHECK-NEXT: kgpu.async_wait 0

// Adjacent threads have adjacent vectors, 256 threads with 16 bytes each. Elements outside of the view get the fill
// value. The next kernel is launched after the loop: before, its CTAs would wait beside this one's.
// CODE-LABEL: llvm.func @two
// CODE-NOT: nvvm.griddepcontrol launch_dependents
// CODE: nvvm.griddepcontrol wait
// CODE: cp.async.cg.shared.global.L2::128B
// CODE: nvvm.cp.async.wait.group 1
// CODE: ld.shared.v4.b32
// CODE: llvm.select
// CODE: cp.async.cg.shared.global.L2::128B
// CODE-NOT: nvvm.barrier
// CODE: st.global
// CODE: nvvm.griddepcontrol launch_dependents
tile.kernel @two(%x: !in, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, persistent, overlaps, stages = 2>, kgpu.target = #kgpu.target<"sm_90a">} {
  %low = arith.constant 0xFF80 : bf16
  %c0 = arith.constant 0 : index
  %first = tile.block_id x
  %step = kgpu.cta_count
  scf.for %i = %first to %rows step %step {
    %v = tile.load %x[%i, %c0] fill %low : !in -> tensor<1x4096xbf16, #row>
    %w = tile.load %x[%c0, %c0] fill %low : !in -> tensor<1x4096xbf16, #row>
    %s = arith.addf %v, %w : tensor<1x4096xbf16, #row>
    tile.store %s, %y[%i, %c0] : tensor<1x4096xbf16, #row>, !out
  }
  tile.return
}

// -----

#row = #kgpu.layout<"reg 1:1-4 1:2048 lane 1:8-128 warp 1:256-1024 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!odd = !tile.view<2xbf16, unit = 1, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// One slot needs no counter. Loads from views with few facts are not changed.
// CHECK-LABEL: tile.kernel @one
// CHECK: %[[RING:.*]] = kgpu.alloc : !kgpu.smem<1x8192xi8>
// CHECK: scf.for %[[I:[a-z0-9]+]] = %{{.*}} to %arg3 step %{{.*}} {
// CHECK-NEXT: kgpu.async_wait 0
// CHECK: kgpu.fetched {{.*}} of %arg0
// CHECK: tile.load %arg1[%[[I]]
// CODE-LABEL: llvm.func @one
// CODE: nvvm.cp.async.wait.group 0
tile.kernel @one(%x: !in, %u: !odd, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 256, persistent, stages = 1>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %first = tile.block_id x
  %step = kgpu.cta_count
  scf.for %i = %first to %rows step %step {
    %v = tile.load %x[%i, %c0] fill %zero : !in -> tensor<1x4096xbf16, #row>
    %w = tile.load %u[%i, %c0] fill %zero : !odd -> tensor<1x4096xbf16, #row>
    %s = arith.addf %v, %w : tensor<1x4096xbf16, #row>
    tile.store %s, %y[%i, %c0] : tensor<1x4096xbf16, #row>, !out
  }
  tile.return
}
