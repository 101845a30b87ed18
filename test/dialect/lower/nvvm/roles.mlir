// A warp copies, a warpgroup multiplies and stores: the instructions of both, in their order.
// RUN: kpkg-opt --kgpu-tensor-stores --kgpu-split-roles --kgpu-alloc-smem --kgpu-insert-barriers --kgpu-verify --lower-nvvm %s | FileCheck %s

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
#any = #kgpu.layout<"reg 1:1-32 lane 0:1-16 warp 0:32 * rep 1x1">
#wide = #kgpu.layout<"reg 1:1-64 lane 0:1-16 warp 0:32 * rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: llvm.func @product
// CHECK-SAME: nvvm.reqntid = array<i32: 160, 1, 1>
// CHECK-COUNT-16: mbarrier.init.shared::cta.b64
// CHECK-NOT: mbarrier.init
// CHECK: fence.mbarrier_init.release.cluster
// CHECK: nvvm.barrier
// CHECK: nvvm.elect.sync
// One thread: wait until the slot is empty, say what will come, one copy for the left operand, two for the right one.
// CHECK: mbarrier.try_wait.parity.shared::cta.b64
// CHECK: mbarrier.arrive.expect_tx.shared::cta.b64 _, [$0], 24576;
// CHECK-COUNT-3: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// CHECK-NOT: cp.async.bulk.tensor
// A warpgroup: four products of 16 elements of depth in flight, the first of which may overwrite, then the slot is given back.
// CHECK: mbarrier.try_wait.parity.shared::cta.b64
// CHECK: wgmma.fence.sync.aligned
// CHECK: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, $128, $129, $130, 1, 1, 0, 1;
// CHECK-COUNT-3: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {{.*}}, $128, $129, 1, 1, 1, 0, 1;
// CHECK-NOT: wgmma.mma_async
// CHECK: wgmma.commit_group.sync.aligned
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: mbarrier.arrive.shared::cta.b64
// Two panels of 64 columns, through two buffers.
// CHECK: cp.async.bulk.wait_group.read 1
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads
// CHECK-COUNT-4: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK-NOT: stmatrix
// CHECK: fence.proxy.async.shared::cta
// CHECK: nvvm.barrier id = %{{.*}} number_of_threads
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// CHECK: cp.async.bulk.commit_group
// CHECK: cp.async.bulk.wait_group.read 1
// CHECK-COUNT-4: stmatrix
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// CHECK: cp.async.bulk.wait_group 0
tile.kernel @product(%a: !in, %b: !in, %y: !out, %m: index, %n: index, %blocks: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.consumers = 1 : i32, kgpu.threads = 160 : i32} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32, #acc>
  %sum = scf.for %k = %c0 to %blocks step %c1 iter_args(%s = %zeros) -> (tensor<64x128xf32, #acc>) {
    %depth = arith.muli %k, %c64 : index
    %u = tile.load %a[%m, %depth] fill %zero : !in -> tensor<64x64xbf16, #any>
    %v = tile.load %b[%depth, %n] fill %zero : !in -> tensor<64x128xbf16, #wide>
    %d = tile.dot %u, %v, %s : tensor<64x64xbf16, #any>, tensor<64x128xbf16, #wide>, tensor<64x128xf32, #acc>
    scf.yield %d : tensor<64x128xf32, #acc>
  }
  %r = arith.truncf %sum : tensor<64x128xf32, #acc> to tensor<64x128xbf16, #acc>
  tile.store %r, %y[%m, %n] : tensor<64x128xbf16, #acc>, !out
  tile.return
}
