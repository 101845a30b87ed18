// Checks that CTAs of a cluster send each other partial results, and wait for nothing else.
// RUN: kpkg-opt --kgpu-expand-reductions --split-input-file %s | FileCheck %s
// RUN: kpkg-opt --kgpu-expand-reductions --kgpu-alloc-smem --kgpu-insert-barriers --kgpu-verify --lower-nvvm --split-input-file %s | FileCheck %s --check-prefix=CODE

#row = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 block 1:512-1024 rep 1x1">
#all = #kgpu.layout<"lane *5 warp *2 block *2 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4>
!out = !tile.view<2xf32, mut, unit = 1>

// One exchange in a loop uses two slots in turn.
// CHECK-LABEL: tile.kernel @one
// CHECK: %[[BARRIERS:.*]] = kgpu.alloc : !kgpu.smem<2xi64>
// CHECK: kgpu.exchange_init %[[BARRIERS]]
// CHECK: %[[ALL:.*]] = kgpu.alloc : !kgpu.smem<2x1x16xf32>
// CHECK: scf.for {{.*}} iter_args(%[[USE:.*]] = %c0_i32{{.*}}) -> (i32) {
// CHECK: %[[PART:.*]] = kgpu.partial_reduce sum
// CHECK: %[[NUMBER:.*]] = arith.remui %[[USE]], %c2_i32
// CHECK: %[[INDEX:.*]] = arith.index_castui %[[NUMBER]]
// CHECK: %[[SLOT:.*]] = kgpu.slot %[[ALL]][%[[INDEX]]]
// CHECK: kgpu.exchange %[[PART]] to %[[SLOT]] signals %[[BARRIERS]][%[[USE]]]
// CHECK: %[[PARTS:.*]] = kgpu.local_load %[[SLOT]]
// CHECK: tile.reduce sum %[[PARTS]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[USE]], %c1_i32
// CHECK: scf.yield %[[NEXT]]

// One thread announces the bytes. In each warp, as many lanes as there are CTAs send the value that all of its lanes
// hold, each to another CTA.
// CODE-LABEL: llvm.func @one
// CODE-DAG: %[[BYTES:.*]] = llvm.mlir.constant(64 : i32) : i32
// CODE-COUNT-2: nvvm.mbarrier.init
// CODE: nvvm.fence.mbarrier.init
// CODE: nvvm.cluster.arrive.relaxed
// CODE: nvvm.cluster.wait
// CODE: llvm.urem
// CODE: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CODE: llvm.icmp "ult"
// CODE: nvvm.mapa
// CODE: st.async.shared::cluster.mbarrier::complete_tx::bytes.b32
// CODE-NOT: st.async
// CODE: mbarrier.try_wait.parity
// CODE-NOT: barrier
// CODE: llvm.return
tile.kernel @one(%x: !in, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 128, cluster = 4>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %rows step %c1 {
    %v = tile.load %x[%i, %c0] fill %zero : !in -> tensor<1x2048xf32, #row>
    %s = tile.reduce sum %v axis 1 : tensor<1x2048xf32, #row> -> tensor<1x1xf32, #all>
    tile.store %s, %y[%i, %c0] : tensor<1x1xf32, #all>, !out
  }
  tile.return
}

// -----

#row = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 block 1:512-1024 rep 1x1">
#all = #kgpu.layout<"lane *5 warp *2 block *2 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4>
!out = !tile.view<2xf32, mut, unit = 1>

// Several exchanges in an iteration order each other, so one slot is enough. Adjacent reductions share one exchange.
// CHECK-LABEL: tile.kernel @several
// CHECK-DAG: kgpu.alloc : !kgpu.smem<1x1x16xf32>
// CHECK-NOT: smem<2x
// CHECK: scf.for
// CHECK: kgpu.exchange %{{[0-9a-z]+}} to
// CHECK: tile.reduce max
// CHECK: kgpu.exchange %{{[0-9a-z]+}}, %{{[0-9a-z]+}} to
// CHECK-NOT: kgpu.exchange %
tile.kernel @several(%x: !in, %y: !out, %rows: index)
    attributes {kgpu.launch = #kgpu.launch<threads = 128, cluster = 4>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %rows step %c1 {
    %v = tile.load %x[%i, %c0] fill %zero : !in -> tensor<1x2048xf32, #row>
    %m = tile.reduce max %v axis 1 : tensor<1x2048xf32, #row> -> tensor<1x1xf32, #all>
    %b = tile.broadcast %m : tensor<1x1xf32, #all> -> tensor<1x2048xf32, #row>
    %d = arith.subf %v, %b : tensor<1x2048xf32, #row>
    %s = tile.reduce sum %d axis 1 : tensor<1x2048xf32, #row> -> tensor<1x1xf32, #all>
    %t = tile.reduce sum %v axis 1 : tensor<1x2048xf32, #row> -> tensor<1x1xf32, #all>
    %r = arith.addf %s, %t : tensor<1x1xf32, #all>
    tile.store %r, %y[%i, %c0] : tensor<1x1xf32, #all>, !out
  }
  tile.return
}

// -----

#row = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 block 1:512-1024 rep 1x1">
#wide = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128 * block 1:256-512 rep 1x1">
#all = #kgpu.layout<"lane *5 warp *2 block *2 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4>
!out = !tile.view<2xf32, mut, unit = 1>

// The cluster uses barriers where not all CTAs may arrive, and where a warp would have nothing to send.
// CHECK-LABEL: tile.kernel @barriers
// CHECK-NOT: kgpu.exchange
// CHECK: kgpu.remote_store
// CHECK: scf.if
// CHECK: kgpu.remote_store
tile.kernel @barriers(%x: !in, %y: !out, %some: i1)
    attributes {kgpu.launch = #kgpu.launch<threads = 128, cluster = 4>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %w = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<1x1024xf32, #wide>
  %t = tile.reduce sum %w axis 1 : tensor<1x1024xf32, #wide> -> tensor<1x1xf32, #all>
  tile.store %t, %y[%c0, %c0] : tensor<1x1xf32, #all>, !out
  scf.if %some {
    %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<1x2048xf32, #row>
    %s = tile.reduce sum %v axis 1 : tensor<1x2048xf32, #row> -> tensor<1x1xf32, #all>
    tile.store %s, %y[%c0, %c0] : tensor<1x1xf32, #all>, !out
  }
  tile.return
}
