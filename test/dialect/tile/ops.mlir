// Tests that every op of the tile dialect parses, verifies, and survives a round trip in both text forms and in
// bytecode.
// RUN: kpkg-opt --verify-roundtrip %s | FileCheck %s
// RUN: kpkg-opt --mlir-print-op-generic %s | kpkg-opt | FileCheck %s

// CHECK-LABEL: tile.kernel @all(
// CHECK-SAME: %{{.*}}: !tile.view<2xf32>, %{{.*}}: !tile.view<2xf32, mut, unit = 1>, %{{.*}}: !tile.view<0xbf16, mut>, %{{.*}}: f32)
// CHECK-SAME: attributes {kernel = "all", params = {T = "float32"}, variant = "any"}
tile.kernel @all(%x: !tile.view<2xf32>, %y: !tile.view<2xf32, mut, unit = 1>, %z: !tile.view<0xbf16, mut>, %alpha: f32)
    attributes {kernel = "all", params = {T = "float32"}, variant = "any"} {
  %zero = arith.constant 0.0 : f32
  %zero16 = arith.constant 0.0 : bf16
  %one = arith.constant 1 : i32
  %true = arith.constant true
  // CHECK: %[[B:.*]] = tile.block_id x
  %block = tile.block_id x
  // CHECK: %[[G:.*]] = tile.grid_dim y
  %g = tile.grid_dim y
  // CHECK: %[[V:.*]] = tile.load %{{.*}}[%[[B]], %[[G]]] fill %{{.*}} : !tile.view<2xf32> -> tensor<4x8xf32>
  %v = tile.load %x[%block, %g] fill %zero : !tile.view<2xf32> -> tensor<4x8xf32>
  // CHECK: tile.dim %{{.*}}, 1 : !tile.view<2xf32>
  %d = tile.dim %x, 1 : !tile.view<2xf32>
  // CHECK: tile.stride %{{.*}}, 0 : !tile.view<2xf32>
  %s = tile.stride %x, 0 : !tile.view<2xf32>
  // CHECK: tile.splat %{{.*}} : f32 -> tensor<1x8xf32>
  %row = tile.splat %alpha : f32 -> tensor<1x8xf32>
  // CHECK: tile.broadcast %{{.*}} : tensor<1x8xf32> -> tensor<4x8xf32>
  %factor = tile.broadcast %row : tensor<1x8xf32> -> tensor<4x8xf32>
  %w = arith.mulf %v, %factor : tensor<4x8xf32>
  // CHECK: tile.store %{{.*}}, %{{.*}}[%[[B]], %{{.*}}] : tensor<4x8xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.store %w, %y[%block, %d] : tensor<4x8xf32>, !tile.view<2xf32, mut, unit = 1>
  // A view of rank 0 loads and stores scalars.
  // CHECK: %[[Z:.*]] = tile.load %{{.*}}[] fill %{{.*}} : !tile.view<0xbf16, mut> -> bf16
  %b = tile.load %z[] fill %zero16 : !tile.view<0xbf16, mut> -> bf16
  // CHECK: tile.store %[[Z]], %{{.*}}[] : bf16, !tile.view<0xbf16, mut>
  tile.store %b, %z[] : bf16, !tile.view<0xbf16, mut>
  // CHECK: tile.drop %{{.*}} [1] at(%[[G]]) : !tile.view<2xf32> -> !tile.view<1xf32>
  %column = tile.drop %x [1] at (%g) : !tile.view<2xf32> -> !tile.view<1xf32>
  // CHECK: tile.drop %{{.*}} [0] at(%[[G]]) : !tile.view<2xf32, mut, unit = 1> -> !tile.view<1xf32, mut, unit = 0>
  %line = tile.drop %y [0] at (%g) : !tile.view<2xf32, mut, unit = 1> -> !tile.view<1xf32, mut, unit = 0>
  // CHECK: tile.slice %{{.*}}, 1 from %[[B]] to %[[G]] : !tile.view<2xf32> -> !tile.view<2xf32>
  %part = tile.slice %x, 1 from %block to %g : !tile.view<2xf32> -> !tile.view<2xf32>
  // CHECK: tile.iota : tensor<4xindex>
  %i = tile.iota : tensor<4xindex>
  %mask = tile.splat %true : i1 -> tensor<4xi1>
  // CHECK: tile.gather %{{.*}}[%{{.*}}] fill %{{.*}} : !tile.view<1xf32>, tensor<4xindex> -> tensor<4xf32>
  %ga = tile.gather %column[%i] fill %zero : !tile.view<1xf32>, tensor<4xindex> -> tensor<4xf32>
  // CHECK: tile.gather %{{.*}}[%{{.*}}, %{{.*}}] fill %{{.*}} mask %{{.*}} : !tile.view<2xf32>, tensor<4xindex> -> tensor<4xf32>
  %gb = tile.gather %x[%i, %i] fill %zero mask %mask : !tile.view<2xf32>, tensor<4xindex> -> tensor<4xf32>
  // CHECK: tile.scatter %{{.*}}, %{{.*}}[%{{.*}}] : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex>
  tile.scatter %ga, %line[%i] : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex>
  // CHECK: tile.scatter %{{.*}}, %{{.*}}[%{{.*}}] mask %{{.*}} : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex>
  tile.scatter %gb, %line[%i] mask %mask : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex>
  // CHECK: tile.atomic add %{{.*}}, %{{.*}}[%{{.*}}] mask %{{.*}} : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex>
  tile.atomic add %gb, %line[%i] mask %mask : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex>
  // CHECK: tile.atomic min %{{.*}}, %{{.*}}[%{{.*}}] : tensor<4xf32>
  tile.atomic min %gb, %line[%i] : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex>
  // CHECK: %[[OLD:.*]] = tile.atomic add %{{.*}}, %{{.*}}[%{{.*}}] : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex> -> tensor<4xf32>
  %old = tile.atomic add %gb, %line[%i] : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex> -> tensor<4xf32>
  // CHECK: tile.atomic exchange %[[OLD]],
  tile.atomic exchange %old, %line[%i] : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex>
  // CHECK: tile.atomic compare_exchange %{{.*}}, %{{.*}}[%{{.*}}] mask %{{.*}} expected %[[OLD]] : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex> -> tensor<4xf32>
  %found = tile.atomic compare_exchange %gb, %line[%i] mask %mask expected %old : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>, tensor<4xindex> -> tensor<4xf32>
  // CHECK: tile.add_store %{{.*}}, %{{.*}}[%{{.*}}] : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>
  tile.add_store %gb, %line[%block] : tensor<4xf32>, !tile.view<1xf32, mut, unit = 0>
  %ones = tile.splat %one : i32 -> tensor<4x8xi32>
  // CHECK: %{{.*}}:2 = tile.combine(%{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<4x8xi32>) axis 1 init(%{{.*}}, %{{.*}} : f32, i32) -> tensor<4x1xf32>, tensor<4x1xi32> {
  // CHECK: tile.yield %{{.*}}, %{{.*}} : f32, i32
  %c:2 = tile.combine (%v, %ones : tensor<4x8xf32>, tensor<4x8xi32>) axis 1 init (%zero, %one : f32, i32)
      -> tensor<4x1xf32>, tensor<4x1xi32> {
  ^bb0(%la: f32, %lb: i32, %ra: f32, %rb: i32):
    %sum = arith.addf %la, %ra : f32
    %product = arith.muli %lb, %rb : i32
    tile.yield %sum, %product : f32, i32
  }
  // CHECK: tile.scan(%{{.*}} : tensor<4x8xf32>) axis 1 {
  %sc = tile.scan (%v : tensor<4x8xf32>) axis 1 {
  ^bb0(%lhs: f32, %rhs: f32):
    %sum = arith.addf %lhs, %rhs : f32
    tile.yield %sum : f32
  }
  // CHECK: tile.reduce max %{{.*}} axis 0 : tensor<4x8xf32> -> tensor<1x8xf32>
  %re = tile.reduce max %v axis 0 : tensor<4x8xf32> -> tensor<1x8xf32>
  // CHECK: tile.arg_reduce umin %{{.*}} axis 1 : tensor<4x8xi32> -> tensor<4x1xindex>
  %ar = tile.arg_reduce umin %ones axis 1 : tensor<4x8xi32> -> tensor<4x1xindex>
  // CHECK: tile.permute %{{.*}} [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %vt = tile.permute %v [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  // CHECK: tile.reshape %{{.*}} : tensor<8x4xf32> -> tensor<2x4x4xf32>
  %rs = tile.reshape %vt : tensor<8x4xf32> -> tensor<2x4x4xf32>
  %acc = tile.splat %zero : f32 -> tensor<4x4xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x4xf32>
  %d0 = tile.dot %v, %vt, %acc : tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x4xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} at %{{.*}} : tensor<4x8xf32>, tensor<16x4xf32>, tensor<4x4xf32>, tensor<4x1xi16>
  %places = arith.constant dense<4> : tensor<4x1xi16>
  %tall = tile.splat %zero : f32 -> tensor<16x4xf32>
  %d2 = tile.dot %v, %tall, %acc at %places : tensor<4x8xf32>, tensor<16x4xf32>, tensor<4x4xf32>, tensor<4x1xi16>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} precision tf32 : tensor<4x8xf32>
  %d1 = tile.dot %v, %vt, %acc precision tf32 : tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x4xf32>
  // CHECK: tile.for_tiles (%[[M:.*]], %[[N:.*]]) to (%{{.*}}, %{{.*}}) {
  // CHECK-NEXT: tile.load %{{.*}}[%[[M]], %[[N]]]
  tile.for_tiles (%m, %n) to (%g, %d) {
    %t = tile.load %x[%m, %n] fill %zero : !tile.view<2xf32> -> tensor<4x8xf32>
    tile.store %t, %y[%m, %n] : tensor<4x8xf32>, !tile.view<2xf32, mut, unit = 1>
  }
  // CHECK: tile.print "done"
  tile.print "done"
  // CHECK: tile.print "{} {}"(%{{.*}}, %{{.*}}) : index, tensor<4x1xindex>
  tile.print "{} {}" (%d, %ar) : index, tensor<4x1xindex>
  // CHECK: tile.assert %{{.*}}, "mask holds" : tensor<4xi1>
  tile.assert %mask, "mask holds" : tensor<4xi1>
  // CHECK: tile.return
  tile.return
}
