// Checks that operands are stored to shared memory without bank conflicts, and read as fragments step by step along K.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-configure{chip=sm_80},kgpu-assign-layouts,kgpu-expand-mma))' | FileCheck %s

!a = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!t = !tile.view<2xbf16, unit = 0, align = 16, divisible = 8, index = 32>
!d = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// Warps form a grid of 2x2; registers of a 16x8 block come first.
// CHECK-DAG: #[[SUM:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-32 0:16-32 lane 1:2-4 0:1-4 warp 1:64 0:64 rep 1x1">
// Copies read along the rows of memory, in vectors of eight.
// CHECK-DAG: #[[COPY:.*]] = #kgpu.layout<"reg 1:1-4 0:32-64 lane 1:8-16 0:1-4 warp 0:8-16 rep 1x1">
// CHECK-DAG: #[[LEFT:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8 0:16-32 lane 1:2-4 0:1-4 warp * 0:64 rep 1x1">
// CHECK-DAG: #[[RIGHT:.*]] = #kgpu.layout<"reg 0:1 0:8 1:8-32 lane 0:2-4 1:1-4 warp 1:64 * rep 1x1">

// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: #kgpu.launch<threads = 128{{[^>]*}}stages = 4
// CHECK: %[[X:.*]] = tile.load {{.*}} -> tensor<128x32xbf16, #[[COPY]]>
// CHECK: %[[Y:.*]] = tile.load {{.*}} -> tensor<32x128xbf16, #{{.*}}>
// CHECK: %[[A:.*]] = kgpu.alloc : !kgpu.smem<128x32xbf16, "2B
// CHECK: kgpu.local_store %[[X]], %[[A]]
// CHECK: %[[B:.*]] = kgpu.alloc : !kgpu.smem<32x128xbf16, "2B
// CHECK: kgpu.local_store %[[Y]], %[[B]]
// CHECK: %[[A0:.*]] = kgpu.local_load %[[A]] at [0, 0] {{.*}} -> tensor<128x16xbf16, #[[LEFT]]>
// CHECK: %[[B0:.*]] = kgpu.local_load %[[B]] at [0, 0] {{.*}} -> tensor<16x128xbf16, #[[RIGHT]]>
// CHECK: %[[A1:.*]] = kgpu.local_load %[[A]] at [0, 16]
// CHECK: %[[B1:.*]] = kgpu.local_load %[[B]] at [16, 0]
// CHECK: %[[S0:.*]] = kgpu.mma %[[A0]], %[[B0]], %{{.*}} : {{.*}} tensor<128x128xf32, #[[SUM]]>
// CHECK: kgpu.mma %[[A1]], %[[B1]], %[[S0]]
// CHECK-NOT: tile.dot
tile.kernel @product(%a: !a, %b: !a, %d: !d) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !a -> tensor<128x32xbf16>
  %y = tile.load %b[%c0, %c0] fill %zero : !a -> tensor<32x128xbf16>
  %acc = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = tile.dot %x, %y, %acc : tensor<128x32xbf16>, tensor<32x128xbf16>, tensor<128x128xf32>
  tile.store %r, %d[%c0, %c0] : tensor<128x128xf32>, !d
  tile.return
}

// An operand that is contiguous along its first dimension is copied along that one.
// CHECK-LABEL: tile.kernel @transposed
// CHECK: tile.load {{.*}} -> tensor<128x32xbf16, #{{.*}}>
// CHECK: kgpu.mma
tile.kernel @transposed(%a: !t, %b: !a, %d: !d) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !t -> tensor<128x32xbf16>
  %y = tile.load %b[%c0, %c0] fill %zero : !a -> tensor<32x128xbf16>
  %acc = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = tile.dot %x, %y, %acc : tensor<128x32xbf16>, tensor<32x128xbf16>, tensor<128x128xf32>
  tile.store %r, %d[%c0, %c0] : tensor<128x128xf32>, !d
  tile.return
}

// Tensor cores multiply f32 only where it may be rounded.
// CHECK-LABEL: tile.kernel @rounded
// CHECK: kgpu.mma {{.*}} tensor<64x8xf32, #{{.*}}>, tensor<8x64xf32, #{{.*}}>, tensor<64x64xf32
// CHECK: tile.dot
tile.kernel @rounded(%a: !tile.view<2xf32, unit = 1>, %d: !d) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<64x32xf32>
  %y = tile.load %a[%c0, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<32x64xf32>
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = tile.dot %x, %y, %acc precision tf32 : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
  %s = tile.dot %x, %y, %r : tensor<64x32xf32>, tensor<32x64xf32>, tensor<64x64xf32>
  tile.store %s, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}
