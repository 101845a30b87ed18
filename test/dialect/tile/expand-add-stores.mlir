// Tests that add-stores become atomic updates of elements.
// RUN: kpkg-opt --tile-expand-add-stores %s | FileCheck %s

// CHECK-LABEL: tile.kernel @rows
// CHECK-SAME: (%[[X:.*]]: !tile.view<2xf32>, %[[Y:.*]]: !tile.view<2xf32, mut>, %[[R:.*]]: index, %[[C:.*]]: index)
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[COLUMN:.*]] = tile.reshape %{{.*}} : tensor<4xindex> -> tensor<4x1xindex>
// CHECK: %[[BEGIN:.*]] = tile.splat %[[R]] : index -> tensor<4x1xindex>
// CHECK: %[[AT:.*]] = arith.addi %[[BEGIN]], %[[COLUMN]] : tensor<4x1xindex>
// CHECK: %[[I:.*]] = tile.broadcast %[[AT]] : tensor<4x1xindex> -> tensor<4x8xindex>
// CHECK: %[[J:.*]] = tile.broadcast %{{.*}} : tensor<1x8xindex> -> tensor<4x8xindex>
// CHECK: tile.atomic add %[[V]], %[[Y]][%[[I]], %[[J]]] : tensor<4x8xf32>, !tile.view<2xf32, mut>, tensor<4x8xindex>
// CHECK-NOT: add_store
tile.kernel @rows(%x: !tile.view<2xf32>, %y: !tile.view<2xf32, mut>, %r: index, %c: index) {
  %zero = arith.constant 0.0 : f32
  %v = tile.load %x[%r, %c] fill %zero : !tile.view<2xf32> -> tensor<4x8xf32>
  tile.add_store %v, %y[%r, %c] : tensor<4x8xf32>, !tile.view<2xf32, mut>
  tile.return
}
