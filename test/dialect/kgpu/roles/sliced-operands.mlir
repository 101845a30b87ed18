// Checks a product whose right operand is a slice with ends from memory. Whole boxes are copied, and rows beyond the
// slice's end are cleared before they are read.
// RUN: kpkg-opt --kgpu-specialise-warps --cse %s | FileCheck %s
// RUN: kpkg-opt --kgpu-specialise-warps --kgpu-pipeline-waits --kgpu-verify-schedule --kgpu-alloc-smem --kgpu-insert-barriers --kgpu-verify %s | FileCheck %s --check-prefix=WHOLE
// RUN: kpkg-opt --kgpu-specialise-warps --kgpu-alloc-smem --kgpu-insert-barriers --kgpu-verify --lower-nvvm %s | FileCheck %s --check-prefix=THREAD

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 rep 1x1">
#any = #kgpu.layout<"reg 1:1-32 lane 0:1-16 warp 0:32 * rep 1x1">
#wide = #kgpu.layout<"reg 1:1-64 lane 0:1-16 warp 0:32 * rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!heads = !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK: kgpu.roles producer_warp {
// The slice begins within the argument: its begin is clipped as the language defines.
// CHECK: %[[EXTENT:.*]] = tile.dim {{.*}}, 0
// CHECK: %[[SOME:.*]] = arith.maxsi %arg4, %{{.*}}
// CHECK: %[[BEGIN:.*]] = arith.minsi %[[SOME]], %[[EXTENT]]
// CHECK: %[[ROW:.*]] = arith.addi %[[BEGIN]], %{{.*}}
// CHECK: kgpu.tensor_load %arg1[%[[ROW]], %arg3, %{{.*}}] map
// CHECK: } consumers {
// CHECK: kgpu.await
// CHECK: %[[SLOT:.*]] = kgpu.slot {{.*}} -> !kgpu.smem<64x128xbf16
// CHECK: %[[LENGTH:.*]] = arith.subi
// CHECK: kgpu.clear_outside %[[SLOT]] from %{{.*}} to %{{.*}}
// CHECK: kgpu.wgmma %{{.*}}, %[[SLOT]]
// The left operand is no slice.
// CHECK-NOT: clear_outside

// WHOLE: kgpu.clear_outside
// WHOLE: kgpu.wgmma

// 128 threads clear 1024 pieces of 16 bytes, only if a row lies outside of the slice. A fence and a barrier follow.
// THREAD: mbarrier.try_wait
// THREAD: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<3>
// THREAD: nvvm.fence.proxy
// THREAD: nvvm.barrier id = %{{.*}} number_of_threads
// THREAD: wgmma.mma_async
tile.kernel @sliced(%a: !in, %b: !heads, %y: !out, %head: index, %begin: index, %end: index, %blocks: index)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zeros = arith.constant dense<0.0> : tensor<64x128xf32, #acc>
  %own = tile.drop %b [1] at (%head) : !heads -> !in
  %rows = tile.slice %own, 0 from %begin to %end : !in -> !in
  %sum = scf.for %k = %c0 to %blocks step %c1 iter_args(%s = %zeros) -> (tensor<64x128xf32, #acc>) {
    %depth = arith.muli %k, %c64 : index
    %u = tile.load %a[%c0, %depth] fill %zero : !in -> tensor<64x64xbf16, #any>
    %v = tile.load %rows[%depth, %c0] fill %zero : !in -> tensor<64x128xbf16, #wide>
    %d = tile.dot %u, %v, %s : tensor<64x64xbf16, #any>, tensor<64x128xbf16, #wide>, tensor<64x128xf32, #acc>
    scf.yield %d : tensor<64x128xf32, #acc>
  }
  %r = arith.truncf %sum : tensor<64x128xf32, #acc> to tensor<64x128xbf16, #acc>
  tile.store %r, %y[%c0, %c0] : tensor<64x128xbf16, #acc>, !out
  tile.return
}
