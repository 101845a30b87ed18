// Checks the launch of a product whose left operand of f32 is contiguous along M, with rows for three warpgroups. Only
// one or two warpgroups load such an operand as fragments, so that the launch has no roles.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-configure{chip=sm_90a}))' | FileCheck %s

!x = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!w = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!y = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: tile.kernel @thirds
// CHECK-SAME: kgpu.launch = #kgpu.launch<threads = 128, min_ctas = 2, stages = 3>
tile.kernel @thirds(%x: !x, %w: !w, %y: !y) {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<192x64xf32>
  %c0 = arith.constant 0 : index
  %u = tile.load %x[%c0, %c0] fill %zero : !x -> tensor<32x192xf32>
  %v = tile.load %w[%c0, %c0] fill %zero : !w -> tensor<64x32xf32>
  %left = tile.permute %u [1, 0] : tensor<32x192xf32> -> tensor<192x32xf32>
  %right = tile.permute %v [1, 0] : tensor<64x32xf32> -> tensor<32x64xf32>
  %p = tile.dot %left, %right, %zeros precision tf32 : tensor<192x32xf32>, tensor<32x64xf32>, tensor<192x64xf32>
  %r = tile.permute %p [1, 0] : tensor<192x64xf32> -> tensor<64x192xf32>
  tile.store %r, %y[%c0, %c0] : tensor<64x192xf32>, !y
  tile.return
}
