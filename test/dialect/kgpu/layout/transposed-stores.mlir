// Checks a tile that is loaded along one dimension and stored along another. Both accesses have vectors, and the tile
// is converted in between.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts))' | FileCheck %s

!x = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!y = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK: #[[ROWS:.*]] = #kgpu.layout<"reg 1:1-2 {{.*}}
// CHECK-LABEL: tile.kernel @transposed
// CHECK: tile.load {{.*}} -> tensor<64x64xf32, #[[ROWS]]>
// CHECK: %[[T:.*]] = tile.permute
// CHECK: %[[C:.*]] = kgpu.cvt_layout %[[T]] : {{.*}} -> tensor<64x64xf32, #[[ROWS]]>
// CHECK: tile.store %[[C]]
tile.kernel @transposed(%x: !x, %y: !y) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %fill = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %fill : !x -> tensor<64x64xf32>
  %t = tile.permute %v [1, 0] : tensor<64x64xf32> -> tensor<64x64xf32>
  tile.store %t, %y[%c0, %c0] : tensor<64x64xf32>, !y
  tile.return
}

// A tile that keeps its last dimension keeps its layout.
// CHECK-LABEL: tile.kernel @kept
// CHECK-NOT: kgpu.cvt_layout
// CHECK: tile.return
tile.kernel @kept(%x: !tile.view<3xf32, unit = 2, align = 16, divisible = 4, index = 32>, %y: !tile.view<3xf32, mut, unit = 2, align = 16, divisible = 4, index = 32>)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %fill = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0, %c0] fill %fill : !tile.view<3xf32, unit = 2, align = 16, divisible = 4, index = 32> -> tensor<4x8x64xf32>
  %t = tile.permute %v [1, 0, 2] : tensor<4x8x64xf32> -> tensor<8x4x64xf32>
  tile.store %t, %y[%c0, %c0, %c0] : tensor<8x4x64xf32>, !tile.view<3xf32, mut, unit = 2, align = 16, divisible = 4, index = 32>
  tile.return
}
