// Tests kernels at thread level on GPUs: each op is an instruction of its thread.
// RUN: kpkg-opt --gpu-pipeline=chip=sm_90a --lower-gpu --canonicalize --cse %s | FileCheck %s

!written = !tile.view<0xf32, mut>
!memory = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 16, index = 32>

// CHECK-LABEL: gpu.func @exchange
// CHECK-SAME: known_block_size = array<i32: 96, 1, 1>
// CHECK: gpu.thread_id x
// CHECK: st.shared.b32
// CHECK: gpu.barrier
// CHECK: ld.shared.b32
// CHECK: nvvm.shfl.sync down
// CHECK: nvvm.vote.sync ballot
// CHECK: scf.if
// CHECK: llvm.atomicrmw fadd {{.*}} syncscope("block")
// CHECK: gpu.return
tile.kernel @exchange(%y: !tile.view<1xi32, mut>, %v: f32) attributes {tile.threads = array<i64: 96, 1, 1>} {
  %zero = arith.constant 0.0 : f32
  %c1 = arith.constant 1 : index
  %distance = arith.constant 4 : i32
  %t = tile.thread_id
  %m = tile.scratch [64] : !memory
  %to = tile.drop %m [0] at (%t) : !memory -> !tile.view<0xf32, mut>
  tile.store %v, %to[] : f32, !tile.view<0xf32, mut>
  tile.barrier block
  %next = arith.addi %t, %c1 : index
  %from = tile.drop %m [0] at (%next) : !memory -> !tile.view<0xf32, mut>
  %r = tile.load %from[] fill %zero : !tile.view<0xf32, mut> -> f32
  %s = tile.shuffle down %r, %distance : f32
  %is = arith.cmpf ogt, %s, %zero : f32
  %mask = tile.vote ballot %is : i32
  tile.atomic_element add %s, %to : f32, !tile.view<0xf32, mut>
  %o = tile.drop %y [0] at (%t) : !tile.view<1xi32, mut> -> !tile.view<0xi32, mut>
  tile.store %mask, %o[] : i32, !tile.view<0xi32, mut>
  tile.return
}

// Blocks of a cluster have a place each in the grid, which counts clusters.
// CHECK-LABEL: gpu.func @cluster
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>
// CHECK: nvvm.mapa
// CHECK: llvm.addrspacecast
// CHECK: nvvm.cluster.arrive
// CHECK: nvvm.cluster.wait
tile.kernel @cluster(%y: !tile.view<1xf32, mut>) attributes {tile.threads = array<i64: 64, 1, 1>, tile.cluster = 2 : i64} {
  %zero = arith.constant 0.0 : f32
  %t = tile.thread_id
  %rank = tile.cluster_rank
  %b = tile.block_id x
  %m = tile.scratch [64] : !memory
  %p = tile.shared_of_rank %m, %rank : !memory
  tile.barrier cluster
  %from = tile.drop %p [0] at (%t) : !memory -> !tile.view<0xf32, mut>
  %r = tile.load %from[] fill %zero : !tile.view<0xf32, mut> -> f32
  %o = tile.drop %y [0] at (%b) : !tile.view<1xf32, mut> -> !written
  tile.store %r, %o[] : f32, !written
  tile.return
}
