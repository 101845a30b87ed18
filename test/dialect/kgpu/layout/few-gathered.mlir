// Checks that gathers of rows use shorter vectors if a tile has too few elements for whole vectors in all threads.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts))' | FileCheck %s

!x = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>
!y = !tile.view<2xf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK: #[[FOURS:layout[0-9]*]] = #kgpu.layout<"reg 1:1-2 lane 1:4-16 0:1-2
// CHECK-LABEL: tile.kernel @few
// CHECK: tile.gather {{.*}} -> tensor<4x32xf16, #[[FOURS]]>
tile.kernel @few(%x: !x, %y: !y) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f16
  %r = arith.constant dense<3> : tensor<4x1xindex>
  %rows = tile.broadcast %r : tensor<4x1xindex> -> tensor<4x32xindex>
  %i = tile.iota : tensor<32xindex>
  %j = tile.reshape %i : tensor<32xindex> -> tensor<1x32xindex>
  %columns = tile.broadcast %j : tensor<1x32xindex> -> tensor<4x32xindex>
  %v = tile.gather %x[%rows, %columns] fill %zero : !x, tensor<4x32xindex> -> tensor<4x32xf16>
  tile.scatter %v, %y[%rows, %columns] : tensor<4x32xf16>, !y, tensor<4x32xindex>
  tile.return
}
