// Tests layout conversions: renamed registers, and exchanges between lanes.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse --split-input-file %s | FileCheck %s

#row = #kgpu.layout<"reg 0:1-2 lane 0:4-64 rep 1">
#swapped = #kgpu.layout<"reg 0:2 0:1 lane 0:4-64 rep 1">
!in = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>

// Registers that only change their number cost nothing.
// CHECK-LABEL: gpu.func @rename
// CHECK: %[[IN:.*]] = llvm.inline_asm {{.*}}ld.global
// CHECK-NOT: gpu.shuffle
// CHECK-NOT: arith.select
// CHECK: st.global
tile.kernel @rename(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<128xf32, #row>
  %w = kgpu.cvt_layout %v : tensor<128xf32, #row> -> tensor<128xf32, #swapped>
  tile.store %w, %y[%c0] : tensor<128xf32, #swapped>, !out
  tile.return
}

// -----

#row = #kgpu.layout<"reg 0:1-2 lane 0:4-64 rep 1">
#swapped = #kgpu.layout<"reg 0:4 0:2 lane 0:1 0:8-64 rep 1">
!in = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>

// Register bit 0 and lane bit 0 are exchanged: odd lanes swap registers, half of the registers are shuffled, odd lanes
// swap again.
// CHECK-LABEL: gpu.func @butterfly
// CHECK: %[[ODD:.*]] = arith.cmpi ne
// CHECK-COUNT-4: arith.select %[[ODD]]
// CHECK-COUNT-2: gpu.shuffle {{ *}}xor
// CHECK-NOT: gpu.shuffle
// CHECK-COUNT-4: arith.select %[[ODD]]
tile.kernel @butterfly(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<128xf32, #row>
  %w = kgpu.cvt_layout %v : tensor<128xf32, #row> -> tensor<128xf32, #swapped>
  tile.store %w, %y[%c0] : tensor<128xf32, #swapped>, !out
  tile.return
}

// -----

#spread = #kgpu.layout<"lane 0:1-16 rep 1">
#all = #kgpu.layout<"reg 0:1-16 lane *5 rep 1">
!in = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>

// Every lane reads from each lane in turn, without selects.
// CHECK-LABEL: gpu.func @gather_all
// CHECK-COUNT-32: gpu.shuffle {{ *}}idx
// CHECK-NOT: gpu.shuffle
// CHECK-NOT: arith.select
// CHECK: st.global.v4
tile.kernel @gather_all(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<32xf32, #spread>
  %w = kgpu.cvt_layout %v : tensor<32xf32, #spread> -> tensor<32xf32, #all>
  tile.store %w, %y[%c0] : tensor<32xf32, #all>, !out
  tile.return
}

// -----

#row = #kgpu.layout<"reg 0:1-2 lane 0:4-64 rep 1">
#swapped = #kgpu.layout<"reg 0:4 0:2 lane 0:1 0:8-64 rep 1">
!in = !tile.view<1xbf16, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<1xbf16, mut, unit = 0, align = 16, divisible = 4, index = 32>

// Two halves share a shuffle.
// CHECK-LABEL: gpu.func @narrow
// CHECK-COUNT-1: gpu.shuffle {{ *}}xor
// CHECK-NOT: gpu.shuffle
// CHECK: st.global
tile.kernel @narrow(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<128xbf16, #row>
  %w = kgpu.cvt_layout %v : tensor<128xbf16, #row> -> tensor<128xbf16, #swapped>
  tile.store %w, %y[%c0] : tensor<128xbf16, #swapped>, !out
  tile.return
}

// -----

#by_row = #kgpu.layout<"reg 1:1-2 lane 1:4-16 0:1-2 warp 0:4 rep 1x1">
#by_column = #kgpu.layout<"reg 0:1-2 lane 0:4 1:1-8 warp 1:16 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// Through row-major shared memory: rows are written as vectors, columns are read element by element.
// CHECK-LABEL: gpu.func @shared
// CHECK: llvm.store {{.*}} : vector<4xi32>, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK-COUNT-4: llvm.load {{.*}} : !llvm.ptr<3> -> i32
tile.kernel @shared(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64, shared = 1024>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x32xf32, #by_row>
  %buffer = kgpu.alloc offset 0 : !kgpu.smem<8x32xf32>
  kgpu.local_store %v, %buffer : tensor<8x32xf32, #by_row>, !kgpu.smem<8x32xf32>
  kgpu.barrier
  %w = kgpu.local_load %buffer : !kgpu.smem<8x32xf32> -> tensor<8x32xf32, #by_column>
  tile.store %w, %y[%c0, %c0] : tensor<8x32xf32, #by_column>, !out
  tile.return
}
