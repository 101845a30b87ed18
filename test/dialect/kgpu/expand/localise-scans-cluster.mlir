// RUN: kpkg-opt --kgpu-localise-scans %s | FileCheck %s
// RUN: kpkg-opt --kgpu-localise-scans --kgpu-expand-cvt --kgpu-alloc-smem --kgpu-insert-barriers --lower-nvvm %s | FileCheck %s --check-prefix=LLVM

// The CTAs of a cluster take turns with the rows. Each keeps its own while its warps exchange theirs, since nothing moves
// elements from one CTA to another.

#wide = #kgpu.layout<"reg 1:1 lane 1:2-32 warp 1:64 0:4 block 0:1-2 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-DAG: #[[WARP:.*]] = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 0:4 * block 0:1-2 rep 1x1">
// CHECK-LABEL: tile.kernel @rows
// CHECK: tile.scan({{.*}} : tensor<8x128xf32, #[[WARP]]>) axis 1
// LLVM: llvm.func @rows
// LLVM: nvvm.barrier
// LLVM: nvvm.shfl.sync
tile.kernel @rows(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, cluster = 4>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x128xf32, #wide>
  %s = tile.scan (%v : tensor<8x128xf32, #wide>) axis 1 {
  ^bb0(%lhs: f32, %rhs: f32):
    %sum = arith.addf %lhs, %rhs : f32
    tile.yield %sum : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<8x128xf32, #wide>, !out
  tile.return
}
