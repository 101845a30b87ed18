// Tests that 2:4 sparse dots become dense dots.
// RUN: kpkg-opt --tile-densify-dots %s | FileCheck %s

// CHECK-LABEL: tile.kernel @sparse
// CHECK-DAG: %[[V:.*]] = tile.splat %{{.*}} : f16 -> tensor<4x16xf16>
// CHECK-DAG: %[[P:.*]] = tile.splat %{{.*}} : i16 -> tensor<4x2xi16>
// CHECK: tile.reshape %[[P]] : tensor<4x2xi16> -> tensor<4x2x1x1xi16>
// CHECK: %[[WORDS:.*]] = tile.broadcast %{{.*}} : tensor<4x8x1x1xi16> -> tensor<4x8x1x2xi16>
// CHECK: %[[MOVED:.*]] = arith.shrui %[[WORDS]], %{{.*}} : tensor<4x8x1x2xi16>
// CHECK: arith.andi %[[MOVED]]
// CHECK: %[[STANDS:.*]] = arith.cmpi eq
// CHECK: %[[FOUR:.*]] = arith.select %[[STANDS]], %{{.*}}, %{{.*}} : tensor<4x8x4x2xi1>, tensor<4x8x4x2xf16>
// CHECK: %[[SUM:.*]] = tile.reduce sum %[[FOUR]] axis 3
// CHECK: %[[W:.*]] = tile.reshape %[[SUM]] : tensor<4x8x4x1xf16> -> tensor<4x32xf16>
// CHECK: tile.dot %[[W]], %{{.*}}, %{{.*}} : tensor<4x32xf16>, tensor<32x8xf16>, tensor<4x8xf32>
// CHECK-NOT: {{ at }}
tile.kernel @sparse(%a: f16, %p: i16, %c: f32) {
  %v = tile.splat %a : f16 -> tensor<4x16xf16>
  %b = tile.splat %a : f16 -> tensor<32x8xf16>
  %at = tile.splat %p : i16 -> tensor<4x2xi16>
  %sum = tile.splat %c : f32 -> tensor<4x8xf32>
  %r = tile.dot %v, %b, %sum at %at : tensor<4x16xf16>, tensor<32x8xf16>, tensor<4x8xf32>, tensor<4x2xi16>
  tile.return
}
