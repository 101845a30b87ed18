// Tests lifetimes of buffers, and barriers between accesses through views of them.
// RUN: kpkg-opt --kgpu-alloc-smem --kgpu-insert-barriers %s | FileCheck %s

#row = #kgpu.layout<"lane 0:1-16 warp 0:32-64 rep 2">
!big = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 16, index = 32>
!part = !tile.view<1xf32, mut, unit = 0, index = 32>
!out = !tile.view<1xf32, mut, unit = 0>

// Both buffers live in turn, also through parts of views. Updates wait for writes and reads, but not for each other.
// CHECK-LABEL: tile.kernel @turns
// CHECK-SAME: shared = 1024
// CHECK: kgpu.alloc offset 0
// CHECK: tile.store
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: tile.atomic
// CHECK-NEXT: tile.atomic
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: tile.gather
// CHECK-NEXT: tile.load
// CHECK-NEXT: kgpu.alloc offset 0
// CHECK-NEXT: kgpu.view_buffer
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: tile.scatter
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: tile.load
// CHECK-NOT: kgpu.barrier
tile.kernel @turns(%y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<256xf32, #row>
  %i = tile.iota : tensor<256xindex, #row>
  %a = kgpu.alloc : !kgpu.smem<256xf32>
  %m = kgpu.view_buffer %a : !kgpu.smem<256xf32> -> !big
  %part = tile.slice %m, 0 from %n to %n : !big -> !part
  tile.store %v, %m[%c0] : tensor<256xf32, #row>, !big
  tile.atomic add %v, %m[%i] : tensor<256xf32, #row>, !big, tensor<256xindex, #row>
  tile.atomic max %v, %m[%i] : tensor<256xf32, #row>, !big, tensor<256xindex, #row>
  %g = tile.gather %m[%i] fill %zero : !big, tensor<256xindex, #row> -> tensor<256xf32, #row>
  %p = tile.load %part[%c0] fill %zero : !part -> tensor<256xf32, #row>
  %b = kgpu.alloc : !kgpu.smem<256xf32>
  %w = kgpu.view_buffer %b : !kgpu.smem<256xf32> -> !big
  tile.scatter %v, %w[%i] : tensor<256xf32, #row>, !big, tensor<256xindex, #row>
  %r = tile.load %w[%c0] fill %zero : !big -> tensor<256xf32, #row>
  tile.store %g, %y[%c0] : tensor<256xf32, #row>, !out
  tile.store %p, %y[%c0] : tensor<256xf32, #row>, !out
  tile.store %r, %y[%c0] : tensor<256xf32, #row>, !out
  tile.return
}

// The next iteration writes what this one reads.
// CHECK-LABEL: tile.kernel @loop
// CHECK: scf.for
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: tile.store
// CHECK-NEXT: kgpu.barrier
// CHECK-NEXT: tile.gather
// CHECK-NEXT: tile.store
// CHECK-NEXT: }
tile.kernel @loop(%y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %v = arith.constant dense<1.0> : tensor<256xf32, #row>
  %i = tile.iota : tensor<256xindex, #row>
  %a = kgpu.alloc : !kgpu.smem<256xf32>
  %m = kgpu.view_buffer %a : !kgpu.smem<256xf32> -> !big
  scf.for %k = %c0 to %n step %c1 {
    tile.store %v, %m[%c0] : tensor<256xf32, #row>, !big
    %g = tile.gather %m[%i] fill %zero : !big, tensor<256xindex, #row> -> tensor<256xf32, #row>
    tile.store %g, %y[%k] : tensor<256xf32, #row>, !out
  }
  tile.return
}
