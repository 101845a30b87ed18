// Tests that functions whose full precision is never observed are marked, and no others.
// RUN: kpkg-opt --tile-relax-math %s | FileCheck %s

!narrow = !tile.view<1xbf16, mut>
!wide = !tile.view<1xf32, mut>

// CHECK-LABEL: tile.kernel @narrow
// CHECK: math.exp %{{.*}} fastmath<afn>
// CHECK: arith.divf %{{.*}} fastmath<afn>
// CHECK: arith.mulf %{{[a-z0-9]*}}, %{{[a-z0-9]*}} : tensor
tile.kernel @narrow(%y: !narrow, %scalar: f32) {
  %x = tile.splat %scalar : f32 -> tensor<64xf32>
  %c0 = arith.constant 0 : index
  %e = math.exp %x : tensor<64xf32>
  %q = arith.divf %e, %x : tensor<64xf32>
  %p = arith.mulf %q, %x : tensor<64xf32>
  %n = arith.truncf %p : tensor<64xf32> to tensor<64xbf16>
  tile.store %n, %y[%c0] : tensor<64xbf16>, !narrow
  tile.return
}

// One observation in full precision is enough, also of a derived value.
// CHECK-LABEL: tile.kernel @also_stored
// CHECK-NOT: fastmath
// CHECK: tile.return
tile.kernel @also_stored(%y: !narrow, %z: !wide, %scalar: f32) {
  %x = tile.splat %scalar : f32 -> tensor<64xf32>
  %c0 = arith.constant 0 : index
  %e = math.exp %x : tensor<64xf32>
  %n = arith.truncf %e : tensor<64xf32> to tensor<64xbf16>
  tile.store %n, %y[%c0] : tensor<64xbf16>, !narrow
  %a = arith.addf %e, %e : tensor<64xf32>
  tile.store %a, %z[%c0] : tensor<64xf32>, !wide
  tile.return
}

// Comparisons observe every bit.
// CHECK-LABEL: tile.kernel @compared
// CHECK-NOT: fastmath
// CHECK: tile.return
tile.kernel @compared(%y: !narrow, %scalar: f32) {
  %x = tile.splat %scalar : f32 -> tensor<64xf32>
  %c0 = arith.constant 0 : index
  %e = math.exp %x : tensor<64xf32>
  %c = arith.cmpf olt, %e, %x : tensor<64xf32>
  %s = arith.select %c, %e, %x : tensor<64xi1>, tensor<64xf32>
  %n = arith.truncf %s : tensor<64xf32> to tensor<64xbf16>
  tile.store %n, %y[%c0] : tensor<64xbf16>, !narrow
  tile.return
}

// Through a loop: the carried value becomes narrow, or not.
// CHECK-LABEL: tile.kernel @carried
// CHECK: math.exp %{{.*}} fastmath<afn>
// CHECK: math.exp %{{[a-z0-9]*}} : tensor
tile.kernel @carried(%y: !narrow, %z: !wide, %scalar: f32) {
  %x = tile.splat %scalar : f32 -> tensor<64xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %r:2 = scf.for %i = %c0 to %c9 step %c1 iter_args(%a = %x, %b = %x) -> (tensor<64xf32>, tensor<64xf32>) {
    %e = math.exp %a : tensor<64xf32>
    %f = math.exp %b : tensor<64xf32>
    scf.yield %e, %f : tensor<64xf32>, tensor<64xf32>
  }
  %n = arith.truncf %r#0 : tensor<64xf32> to tensor<64xbf16>
  tile.store %n, %y[%c0] : tensor<64xbf16>, !narrow
  tile.store %r#1, %z[%c0] : tensor<64xf32>, !wide
  tile.return
}

// A product that is only summed may be fused into the sum.
// CHECK-LABEL: tile.kernel @squares
// CHECK: arith.mulf %{{.*}} fastmath<contract>
tile.kernel @squares(%z: !wide, %scalar: f32) {
  %x = tile.splat %scalar : f32 -> tensor<64xf32>
  %c0 = arith.constant 0 : index
  %p = arith.mulf %x, %x : tensor<64xf32>
  %s = tile.reduce sum %p axis 0 : tensor<64xf32> -> tensor<1xf32>
  tile.store %s, %z[%c0] : tensor<1xf32>, !wide
  tile.return
}

// A product that is rounded is not fused with an addition of its rounded value.
// CHECK-LABEL: tile.kernel @rounded
// CHECK: %[[P:.*]] = arith.mulf %{{[a-z0-9]*}}, %{{[a-z0-9]*}} : tensor
// CHECK: arith.addf %{{.*}} fastmath<contract>
tile.kernel @rounded(%y: !narrow, %scalar: f32) {
  %x = tile.splat %scalar : f32 -> tensor<64xf32>
  %c0 = arith.constant 0 : index
  %p = arith.mulf %x, %x : tensor<64xf32>
  %n = arith.truncf %p : tensor<64xf32> to tensor<64xbf16>
  %e = arith.extf %n : tensor<64xbf16> to tensor<64xf32>
  %s = arith.addf %e, %x : tensor<64xf32>
  %r = arith.truncf %s : tensor<64xf32> to tensor<64xbf16>
  tile.store %r, %y[%c0] : tensor<64xbf16>, !narrow
  tile.return
}
