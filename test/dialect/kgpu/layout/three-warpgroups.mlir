// Checks that three warpgroups take tiles of 192 rows, unless sums cross rows of several warpgroups. All other tiles
// lie in one warpgroup, and the others hold copies.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-configure{chip=sm_90a},kgpu-schedule-tiles,kgpu-assign-layouts))' | FileCheck %s

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!row = !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>
!sums = !tile.view<1xf32, mut, unit = 0, align = 16, divisible = 4, index = 32>

// Each warpgroup has 64 rows: bits 2 and 3 of the warp.
// CHECK-DAG: #[[SUM:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-128 rep 1x1">

// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: #kgpu.launch<threads = 512{{[^>]*}}consumers = 3
// CHECK: tile.dot {{.*}}, tensor<192x64xf32, #[[SUM]]>
// CHECK: tile.reduce
tile.kernel @product(%a: !in, %b: !in, %bias: !row, %d: !out, %s: !sums) {
  %zero = arith.constant 0.0 : bf16
  %nought = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<192x64xf32>
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !in -> tensor<192x64xbf16>
  %y = tile.load %b[%c0, %c0] fill %zero : !in -> tensor<64x64xbf16>
  %p = tile.dot %x, %y, %zeros : tensor<192x64xbf16>, tensor<64x64xbf16>, tensor<192x64xf32>
  %r = tile.load %bias[%c0] fill %nought : !row -> tensor<64xf32>
  %flat = tile.reshape %r : tensor<64xf32> -> tensor<1x64xf32>
  %wide = tile.broadcast %flat : tensor<1x64xf32> -> tensor<192x64xf32>
  %sum = arith.addf %p, %wide : tensor<192x64xf32>
  tile.store %sum, %d[%c0, %c0] : tensor<192x64xf32>, !out
  %total = tile.reduce sum %sum axis 1 : tensor<192x64xf32> -> tensor<192x1xf32>
  %list = tile.reshape %total : tensor<192x1xf32> -> tensor<192xf32>
  tile.store %list, %s[%c0] : tensor<192xf32>, !sums
  tile.return
}

// CHECK-LABEL: tile.kernel @columns
// CHECK-NOT: consumers
// CHECK: tile.return
tile.kernel @columns(%a: !in, %b: !in, %s: !sums) {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<192x64xf32>
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !in -> tensor<192x64xbf16>
  %y = tile.load %b[%c0, %c0] fill %zero : !in -> tensor<64x64xbf16>
  %p = tile.dot %x, %y, %zeros : tensor<192x64xbf16>, tensor<64x64xbf16>, tensor<192x64xf32>
  %total = tile.reduce sum %p axis 0 : tensor<192x64xf32> -> tensor<1x64xf32>
  %list = tile.reshape %total : tensor<1x64xf32> -> tensor<64xf32>
  tile.store %list, %s[%c0] : tensor<64xf32>, !sums
  tile.return
}
