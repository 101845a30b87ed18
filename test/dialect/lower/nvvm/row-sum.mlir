// Tests the sum of a row of 1024 halves on 128 threads: vector loads, a reduction across warps, vector stores.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse %s | FileCheck %s
// RUN: kpkg-opt --lower-nvvm %s | FileCheck %s --check-prefix=LLVM

#row = #kgpu.layout<"reg 1:1-4 lane 1:8-128 warp 1:256-512 rep 1x1">
#part = #kgpu.layout<"lane *5 warp 1:1-2 rep 1x1">
#gather = #kgpu.layout<"lane 1:1-2 *3 warp *2 rep 1x1">
#all = #kgpu.layout<"lane *5 warp *2 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: gpu.func @row_sum
// CHECK-SAME: kernel attributes {known_block_size = array<i32: 128, 1, 1>
// The preceding kernel may still be writing %x, so the kernel waits for it, and %x is not treated as constant.
// CHECK: nvvm.griddepcontrol launch_dependents
// CHECK: nvvm.griddepcontrol wait
// CHECK-COUNT-1: ld.global.v4.b32 {$0, $1, $2, $3}, [$4];
// CHECK-COUNT-5: gpu.shuffle {{ *}}xor
// CHECK: llvm.store {{.*}} !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK: llvm.load {{.*}} !llvm.ptr<3>
// CHECK-COUNT-2: gpu.shuffle {{ *}}xor
// CHECK: @$5 st.global.v4.b32 [$0], {$1, $2, $3, $4};
// LLVM: llvm.func @row_sum
// LLVM-NOT: arith.
// LLVM-NOT: tile.
tile.kernel @row_sum(%x: !in, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 128, overlaps, shared = 16>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !in -> tensor<1x1024xbf16, #row>
  %w = arith.extf %v : tensor<1x1024xbf16, #row> to tensor<1x1024xf32, #row>
  %p = kgpu.partial_reduce sum %w axis 1 : tensor<1x1024xf32, #row> -> tensor<1x4xf32, #part>
  %buffer = kgpu.alloc offset 0 : !kgpu.smem<1x4xf32>
  kgpu.local_store %p, %buffer : tensor<1x4xf32, #part>, !kgpu.smem<1x4xf32>
  kgpu.barrier
  %q = kgpu.local_load %buffer : !kgpu.smem<1x4xf32> -> tensor<1x4xf32, #gather>
  %s = tile.reduce sum %q axis 1 : tensor<1x4xf32, #gather> -> tensor<1x1xf32, #all>
  %b = tile.broadcast %s : tensor<1x1xf32, #all> -> tensor<1x1024xf32, #row>
  %d = arith.divf %w, %b : tensor<1x1024xf32, #row>
  %t = arith.truncf %d : tensor<1x1024xf32, #row> to tensor<1x1024xbf16, #row>
  tile.store %t, %y[%row, %c0] : tensor<1x1024xbf16, #row>, !out
  tile.return
}
