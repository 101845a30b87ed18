// RUN: kpkg-opt --kgpu-localise-scans %s | FileCheck %s
// RUN: kpkg-opt --kgpu-localise-scans --kgpu-expand-cvt --kgpu-alloc-smem --kgpu-insert-barriers --lower-nvvm %s | FileCheck %s --check-prefix=LLVM
// RUN: kpkg-opt --kgpu-localise-scans '--remarks-filter=kgpu-localise-scans' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] scan within warps | Category:kgpu-localise-scans | Function=rows | Remark="warps exchange elements once, so that each has whole rows of the scan"

#wide = #kgpu.layout<"reg 1:1 lane 1:2-32 warp 1:64-128 rep 4x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// Each row gets a warp.
// CHECK-DAG: #[[WIDE:.*]] = #kgpu.layout<"reg 1:1 0:1-2 lane 1:2-32 warp 1:64-128 rep 1x1">
// CHECK-DAG: #[[WARP:.*]] = #kgpu.layout<"reg 1:1-2 1:128 lane 1:4-64 warp 0:1-2 rep 1x1">
// CHECK-LABEL: tile.kernel @rows
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[W:.*]] = kgpu.cvt_layout %[[V]] : tensor<4x256xf32, #[[WIDE]]> -> tensor<4x256xf32, #[[WARP]]>
// CHECK: %[[S:.*]] = tile.scan(%[[W]] : tensor<4x256xf32, #[[WARP]]>) axis 1
// CHECK: %[[T:.*]] = kgpu.cvt_layout %[[S]] : tensor<4x256xf32, #[[WARP]]> -> tensor<4x256xf32, #[[WIDE]]>
// CHECK: tile.store %[[T]]
// LLVM: llvm.func @rows
// LLVM: nvvm.barrier
// LLVM: nvvm.shfl.sync {{ *}}bfly
// LLVM: nvvm.barrier
tile.kernel @rows(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<4x256xf32, #wide>
  %s = tile.scan (%v : tensor<4x256xf32, #wide>) axis 1 {
  ^bb0(%lhs: f32, %rhs: f32):
    %sum = arith.addf %lhs, %rhs : f32
    tile.yield %sum : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<4x256xf32, #wide>, !out
  tile.return
}

// A scan down the columns needs no conversion: its axis lies in registers.
// CHECK-LABEL: tile.kernel @columns
// CHECK-NOT: kgpu.cvt_layout
tile.kernel @columns(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<4x256xf32, #wide>
  %s = tile.scan (%v : tensor<4x256xf32, #wide>) axis 0 {
  ^bb0(%lhs: f32, %rhs: f32):
    %sum = arith.addf %lhs, %rhs : f32
    tile.yield %sum : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<4x256xf32, #wide>, !out
  tile.return
}
