// Tests that parts of tiles get layouts in which threads keep their elements, where such layouts exist.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-assign-layouts %s | FileCheck %s
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: tile.kernel @pairs
// CHECK-NOT: kgpu.cvt_layout
// CHECK: tile.return
tile.kernel @pairs(%x: !in, %z: !in, %y: !out) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x128xf32>
  %w = tile.load %z[%c0, %c0] fill %zero : !in -> tensor<8x64xf32>
  %a = tile.extract %v [0, 0] step [1, 2] : tensor<8x128xf32> -> tensor<8x64xf32>
  %b = tile.extract %v [0, 1] step [1, 2] : tensor<8x128xf32> -> tensor<8x64xf32>
  %c = arith.mulf %a, %w : tensor<8x64xf32>
  %d = arith.mulf %b, %w : tensor<8x64xf32>
  %e = tile.reshape %c : tensor<8x64xf32> -> tensor<8x64x1xf32>
  %f = tile.reshape %d : tensor<8x64xf32> -> tensor<8x64x1xf32>
  %g = tile.join %f, %e axis 2 : tensor<8x64x1xf32>, tensor<8x64x1xf32> -> tensor<8x64x2xf32>
  %h = tile.reshape %g : tensor<8x64x2xf32> -> tensor<8x128xf32>
  tile.store %h, %y[%c0, %c0] : tensor<8x128xf32>, !out
  tile.return
}

// A thread holds both halves after one conversion of the tile, and before one of the result.
// CHECK-LABEL: tile.kernel @halves
// CHECK: %[[V:.*]] = tile.load
// CHECK: kgpu.cvt_layout
// CHECK: tile.return
tile.kernel @halves(%x: !in, %y: !out) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x128xf32>
  %a = tile.extract %v [0, 0] step [1, 1] : tensor<8x128xf32> -> tensor<8x64xf32>
  %b = tile.extract %v [0, 64] step [1, 1] : tensor<8x128xf32> -> tensor<8x64xf32>
  %c = arith.mulf %a, %b : tensor<8x64xf32>
  %d = tile.join %b, %c axis 1 : tensor<8x64xf32>, tensor<8x64xf32> -> tensor<8x128xf32>
  %e = arith.mulf %d, %v : tensor<8x128xf32>
  tile.store %e, %y[%c0, %c0] : tensor<8x128xf32>, !out
  tile.return
}
