// Checks the position of an extreme: a reduction of pairs that takes the first of equal elements, and NaN before
// numbers.
// RUN: kpkg-opt --kgpu-expand-arg-reduce %s | FileCheck %s

// CHECK-LABEL: tile.kernel @floats
// CHECK-DAG: %[[LOW:.*]] = arith.constant 0xFF800000 : f32
// CHECK-DAG: %[[LAST:.*]] = arith.constant 2147483647 : i32
// CHECK: tile.iota : tensor<64xindex>
// CHECK: arith.index_cast %{{.*}} : tensor<64xindex> to tensor<64xi32>
// CHECK: %[[AT:.*]] = tile.broadcast %{{.*}} : tensor<1x64xi32> -> tensor<4x64xi32>
// CHECK: %[[R:.*]]:2 = tile.combine(%{{.*}}, %[[AT]] : tensor<4x64xf32>, tensor<4x64xi32>) axis 1 init(%[[LOW]], %[[LAST]] : f32, i32)
// CHECK: ^bb0(%[[L:.*]]: f32, %[[LA:.*]]: i32, %[[RV:.*]]: f32, %[[RA:.*]]: i32)
// CHECK: %[[FURTHER:.*]] = arith.cmpf ugt, %[[L]], %[[RV]]
// CHECK: %[[NUMBER:.*]] = arith.cmpf ord, %[[RV]], %[[RV]]
// CHECK: arith.andi %[[FURTHER]], %[[NUMBER]]
// CHECK: arith.cmpi slt, %[[LA]], %[[RA]]
// CHECK: arith.index_cast %[[R]]#1 : tensor<4x1xi32> to tensor<4x1xindex>
tile.kernel @floats(%x: !tile.view<2xf32>, %y: !tile.view<2xindex, mut>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !tile.view<2xf32> -> tensor<4x64xf32>
  %i = tile.arg_reduce max %v axis 1 : tensor<4x64xf32> -> tensor<4x1xindex>
  tile.store %i, %y[%c0, %c0] : tensor<4x1xindex>, !tile.view<2xindex, mut>
  tile.return
}

// CHECK-LABEL: tile.kernel @integers
// CHECK-DAG: arith.constant -1 : i8
// CHECK: tile.combine
// CHECK: arith.cmpi ult
tile.kernel @integers(%x: !tile.view<1xi8>, %y: !tile.view<1xindex, mut>) {
  %zero = arith.constant 0 : i8
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !tile.view<1xi8> -> tensor<64xi8>
  %i = tile.arg_reduce umin %v axis 0 : tensor<64xi8> -> tensor<1xindex>
  tile.store %i, %y[%c0] : tensor<1xindex>, !tile.view<1xindex, mut>
  tile.return
}
