// Tests that parts of tiles move through shared memory, but for those whose elements stay in their threads.
// RUN: kpkg-opt --kgpu-expand-cvt %s | FileCheck %s
// RUN: kpkg-opt --kgpu-expand-cvt --kgpu-alloc-smem --kgpu-insert-barriers --lower-nvvm %s | FileCheck %s --check-prefix=LLVM

#rows = #kgpu.layout<"reg 1:1-2 lane 1:4-16 0:1-2 warp 0:4 rep 1x1">
#even = #kgpu.layout<"reg 1:1 lane 1:2-8 0:1-2 warp 0:4 rep 1x1">
#three = #kgpu.layout<"reg 1:1 lane 0:1-4 *2 warp * rep 1x1">
#any = #kgpu.layout<"reg 1:1-2 lane 1:4-16 0:1-2 warp 0:4 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// Even columns lie in registers, and so do those of two tiles in turn.
// CHECK-LABEL: tile.kernel @renamed
// CHECK: tile.extract
// CHECK-NOT: kgpu.alloc
// CHECK: tile.store
// LLVM-LABEL: @renamed
// LLVM-NOT: !llvm.ptr<3>
// LLVM: llvm.return
tile.kernel @renamed(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x32xf32, #rows>
  %w = tile.extract %v [0, 0] step [1, 2] : tensor<8x32xf32, #rows> -> tensor<8x16xf32, #even>
  tile.store %w, %y[%c0, %c0] : tensor<8x16xf32, #even>, !out
  tile.return
}

// Both parts are read from one buffer.
// CHECK-LABEL: tile.kernel @moved
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[MEMORY:.*]] = kgpu.alloc : !kgpu.smem<8x32xf32>
// CHECK: kgpu.local_store %[[V]], %[[MEMORY]]
// CHECK: %[[BACK:.*]] = kgpu.slice_buffer %[[MEMORY]] [7, 31] step [-1, -1] : {{.*}} -> !kgpu.smem<8x32xf32, "4B rep 8x32 stride -128,-4">
// CHECK: kgpu.local_load %[[BACK]]
// CHECK-NOT: kgpu.alloc
// CHECK: %[[THREE:.*]] = kgpu.slice_buffer %[[MEMORY]] [0, 5] step [1, 7]
// CHECK: kgpu.local_load %[[THREE]]
// LLVM-LABEL: @moved
// LLVM: llvm.store {{.*}} !llvm.ptr<3>
// LLVM: nvvm.barrier
// LLVM-NOT: nvvm.barrier
// LLVM: llvm.load {{.*}} !llvm.ptr<3>
// LLVM: llvm.return
tile.kernel @moved(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x32xf32, #rows>
  %w = tile.extract %v [7, 31] step [-1, -1] : tensor<8x32xf32, #rows> -> tensor<8x32xf32, #rows>
  tile.store %w, %y[%c0, %c0] : tensor<8x32xf32, #rows>, !out
  %u = tile.extract %v [0, 5] step [1, 7] : tensor<8x32xf32, #rows> -> tensor<8x2xf32, #three>
  tile.store %u, %y[%c0, %c0] : tensor<8x2xf32, #three>, !out
  tile.return
}

// CHECK-LABEL: tile.kernel @joined
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[U:.*]] = tile.load
// CHECK: %[[MEMORY:.*]] = kgpu.alloc : !kgpu.smem<8x18xf32>
// CHECK: %[[FIRST:.*]] = kgpu.slice_buffer %[[MEMORY]] [0, 0] step [1, 1]
// CHECK: kgpu.local_store %[[U]], %[[FIRST]]
// CHECK: %[[SECOND:.*]] = kgpu.slice_buffer %[[MEMORY]] [0, 2] step [1, 1]
// CHECK: kgpu.local_store %[[V]], %[[SECOND]]
// CHECK: kgpu.local_load %[[MEMORY]]
tile.kernel @joined(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x16xf32, #even>
  %u = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x2xf32, #three>
  %w = tile.join %u, %v axis 1 : tensor<8x2xf32, #three>, tensor<8x16xf32, #even> -> tensor<8x18xf32, #any>
  tile.store %w, %y[%c0, %c0] : tensor<8x18xf32, #any>, !out
  tile.return
}
