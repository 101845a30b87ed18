// Tests parts of buffers whose size is no multiple of 16 bytes: vectors are no wider than the alignment of every part.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse --split-input-file %s | FileCheck %s

#L = #kgpu.layout<"reg 0:1-2 lane rep 2">
!out = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>

// Slots of 32 bytes hold vectors of 16.
// CHECK-LABEL: gpu.func @wide
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
tile.kernel @wide(%i: index, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32, shared = 128>} {
  %c0 = arith.constant 0 : index
  %buffer = kgpu.alloc offset 0 : !kgpu.smem<4x8xf32>
  %slot = kgpu.slot %buffer[%i] : !kgpu.smem<4x8xf32> -> !kgpu.smem<8xf32>
  %v = kgpu.local_load %slot : !kgpu.smem<8xf32> -> tensor<8xf32, #L>
  tile.store %v, %y[%c0] : tensor<8xf32, #L>, !out
  tile.return
}

// -----

#L = #kgpu.layout<"reg 0:1 lane rep 3">
!out = !tile.view<1xf32, mut, unit = 0, align = 8, divisible = 2, index = 32>

// CHECK-LABEL: gpu.func @narrow
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xi32>
tile.kernel @narrow(%i: index, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32, shared = 128>} {
  %c0 = arith.constant 0 : index
  %buffer = kgpu.alloc offset 0 : !kgpu.smem<4x6xf32>
  %slot = kgpu.slot %buffer[%i] : !kgpu.smem<4x6xf32> -> !kgpu.smem<6xf32>
  %v = kgpu.local_load %slot : !kgpu.smem<6xf32> -> tensor<6xf32, #L>
  tile.store %v, %y[%c0] : tensor<6xf32, #L>, !out
  tile.return
}

// -----

#L = #kgpu.layout<"reg 0:1 lane rep 2">
!out = !tile.view<1xf32, mut, unit = 0, align = 4, divisible = 1, index = 32>

// The part is aligned to 4 bytes only, for any tile in it.
// CHECK-LABEL: gpu.func @nested
// CHECK-NOT: vector<
// CHECK: gpu.return
tile.kernel @nested(%i: index, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32, shared = 128>} {
  %c0 = arith.constant 0 : index
  %buffer = kgpu.alloc offset 0 : !kgpu.smem<4x1x3xf32>
  %slot = kgpu.slot %buffer[%i] : !kgpu.smem<4x1x3xf32> -> !kgpu.smem<1x3xf32>
  %flat = kgpu.slot %slot[%c0] : !kgpu.smem<1x3xf32> -> !kgpu.smem<3xf32>
  %v = kgpu.local_load %flat : !kgpu.smem<3xf32> -> tensor<3xf32, #L>
  tile.store %v, %y[%c0] : tensor<3xf32, #L>, !out
  tile.return
}
