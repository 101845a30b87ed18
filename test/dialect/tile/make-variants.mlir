// RUN: kpkg-opt --tile-make-variants %s | FileCheck %s

// The operands of the dot keep general strides in both variants; the result and its addend do not. Dropped views
// follow.
// CHECK: tile.kernel @product__unit(%{{.*}}: !tile.view<2xf32>, %{{.*}}: !tile.view<2xf32>, %{{.*}}: !tile.view<3xf32, unit = 2>, %{{.*}}: !tile.view<2xf32, mut, unit = 1>)
// CHECK-SAME: variant = "unit"
// CHECK: tile.drop {{.*}} : !tile.view<3xf32, unit = 2> -> !tile.view<2xf32, unit = 1>
// CHECK: tile.kernel @product__any(%{{.*}}: !tile.view<2xf32>, %{{.*}}: !tile.view<2xf32>, %{{.*}}: !tile.view<3xf32>, %{{.*}}: !tile.view<2xf32, mut>)
// CHECK-SAME: variant = "any"
// CHECK: tile.drop {{.*}} : !tile.view<3xf32> -> !tile.view<2xf32>
tile.kernel @product(%a: !tile.view<2xf32>, %b: !tile.view<2xf32>, %c: !tile.view<3xf32>, %d: !tile.view<2xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tile.drop %c [0] at (%c0) : !tile.view<3xf32> -> !tile.view<2xf32>
  %x = tile.load %a[%c0, %c0] fill %zero : !tile.view<2xf32> -> tensor<8x8xf32>
  %y = tile.load %b[%c0, %c0] fill %zero : !tile.view<2xf32> -> tensor<8x8xf32>
  %t = tile.permute %y [1, 0] : tensor<8x8xf32> -> tensor<8x8xf32>
  %acc = tile.load %e[%c0, %c0] fill %zero : !tile.view<2xf32> -> tensor<8x8xf32>
  %r = tile.dot %x, %t, %acc : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
  tile.store %r, %d[%c0, %c0] : tensor<8x8xf32>, !tile.view<2xf32, mut>
  tile.return
}

// No facts are possible, so there is one variant.
// CHECK-NOT: @scalars__unit
// CHECK: tile.kernel @scalars__any
tile.kernel @scalars(%x: !tile.view<0xf32, mut>, %v: f32) {
  tile.store %v, %x[] : f32, !tile.view<0xf32, mut>
  tile.return
}
