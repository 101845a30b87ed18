// Tests folds and canonicalisation of the tile dialect; stores keep each kernel's results alive.
// RUN: kpkg-opt %s --canonicalize | FileCheck %s

// Extents and strides that remain after a drop are those of the source.
// CHECK-LABEL: @query_through_drop
// CHECK-SAME: (%[[X:.*]]: !tile.view<3xf32, unit = 2>
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-DAG: tile.dim %[[X]], 1 :
// CHECK-DAG: tile.stride %[[X]], 0 :
// CHECK: tile.print "{} {} {}"(%{{.*}}, %{{.*}}, %[[ONE]])
tile.kernel @query_through_drop(%x: !tile.view<3xf32, unit = 2>, %i: index) {
  %w = tile.drop %x [0] at (%i) : !tile.view<3xf32, unit = 2> -> !tile.view<2xf32, unit = 1>
  %v = tile.drop %x [1] at (%i) : !tile.view<3xf32, unit = 2> -> !tile.view<2xf32, unit = 1>
  %d = tile.dim %w, 0 : !tile.view<2xf32, unit = 1>
  %s = tile.stride %v, 0 : !tile.view<2xf32, unit = 1>
  %u = tile.stride %v, 1 : !tile.view<2xf32, unit = 1>
  tile.print "{} {} {}" (%d, %s, %u) : index, index, index
  tile.return
}

// Extents and strides of scratch memory are constants. Memory that nobody accesses is not provided.
// CHECK-LABEL: @query_of_scratch
// CHECK-NOT: tile.scratch
// CHECK-DAG: %[[FIVE:.*]] = arith.constant 5 : index
// CHECK-DAG: %[[LINE:.*]] = arith.constant 21 : index
// CHECK: tile.print "{} {}"(%[[FIVE]], %[[LINE]])
tile.kernel @query_of_scratch() {
  %m = tile.scratch [5, 3, 7] : !tile.view<3xf32, mut>
  %d = tile.dim %m, 0 : !tile.view<3xf32, mut>
  %s = tile.stride %m, 0 : !tile.view<3xf32, mut>
  tile.print "{} {}" (%d, %s) : index, index
  tile.return
}

// CHECK-LABEL: @merge_drops
// CHECK-SAME: (%[[X:.*]]: !tile.view<4xf32>, %[[I:.*]]: index, %[[J:.*]]: index, %[[K:.*]]: index
// CHECK: tile.drop %[[X]] [0, 1, 3] at(%[[J]], %[[I]], %[[K]]) : !tile.view<4xf32> -> !tile.view<1xf32>
tile.kernel @merge_drops(%x: !tile.view<4xf32>, %i: index, %j: index, %k: index, %f: f32, %y: !tile.view<1xf32, mut>) {
  %a = tile.drop %x [1] at (%i) : !tile.view<4xf32> -> !tile.view<3xf32>
  %b = tile.drop %a [0, 2] at (%j, %k) : !tile.view<3xf32> -> !tile.view<1xf32>
  %t = tile.load %b[%i] fill %f : !tile.view<1xf32> -> tensor<4xf32>
  tile.store %t, %y[%i] : tensor<4xf32>, !tile.view<1xf32, mut>
  tile.return
}

// A fact of the argument's type reaches the views derived from it.
// CHECK-LABEL: @refine_drop
// CHECK: %[[W:.*]] = tile.drop {{.*}} -> !tile.view<1xf32, unit = 0>
// CHECK: tile.load %[[W]]
tile.kernel @refine_drop(%x: !tile.view<2xf32, unit = 1>, %i: index, %f: f32, %y: !tile.view<1xf32, mut>) {
  %a = tile.drop %x [0] at (%i) : !tile.view<2xf32, unit = 1> -> !tile.view<1xf32>
  %t = tile.load %a[%i] fill %f : !tile.view<1xf32> -> tensor<4xf32>
  tile.store %t, %y[%i] : tensor<4xf32>, !tile.view<1xf32, mut>
  tile.return
}

// CHECK-LABEL: @dead_load
// CHECK-NEXT: tile.return
tile.kernel @dead_load(%x: !tile.view<1xf32>, %i: index, %f: f32) {
  %t = tile.load %x[%i] fill %f : !tile.view<1xf32> -> tensor<4xf32>
  %true = arith.constant true
  tile.assert %true, "never fails" : i1
  tile.return
}

// CHECK-LABEL: @splats
// CHECK-SAME: %[[F:.*]]: f32,
// CHECK-DAG: %[[C:.*]] = arith.constant dense<2.000000e+00> : tensor<6xf32>
// CHECK-DAG: %[[S:.*]] = tile.splat %[[F]] : f32 -> tensor<6xf32>
// CHECK: tile.store %[[S]]
// CHECK: tile.store %[[C]]
tile.kernel @splats(%f: f32, %i: index, %y: !tile.view<1xf32, mut>) {
  %two = arith.constant 2.0 : f32
  %a = tile.splat %f : f32 -> tensor<1x2xf32>
  %b = tile.broadcast %a : tensor<1x2xf32> -> tensor<3x2xf32>
  %c = tile.permute %b [1, 0] : tensor<3x2xf32> -> tensor<2x3xf32>
  %d = tile.reshape %c : tensor<2x3xf32> -> tensor<6xf32>
  tile.store %d, %y[%i] : tensor<6xf32>, !tile.view<1xf32, mut>
  %e = tile.splat %two : f32 -> tensor<1x2xf32>
  %g = tile.broadcast %e : tensor<1x2xf32> -> tensor<3x2xf32>
  %h = tile.permute %g [1, 0] : tensor<3x2xf32> -> tensor<2x3xf32>
  %k = tile.reshape %h : tensor<2x3xf32> -> tensor<6xf32>
  tile.store %k, %y[%i] : tensor<6xf32>, !tile.view<1xf32, mut>
  tile.return
}

// CHECK-LABEL: @identities
// CHECK: %[[T:.*]] = tile.load
// CHECK-NEXT: tile.store %[[T]]
// CHECK-NEXT: tile.return
tile.kernel @identities(%x: !tile.view<2xf32>, %i: index, %f: f32, %y: !tile.view<2xf32, mut>) {
  %t = tile.load %x[%i, %i] fill %f : !tile.view<2xf32> -> tensor<4x1xf32>
  %a = tile.permute %t [0, 1] : tensor<4x1xf32> -> tensor<4x1xf32>
  %b = tile.permute %a [1, 0] : tensor<4x1xf32> -> tensor<1x4xf32>
  %c = tile.permute %b [1, 0] : tensor<1x4xf32> -> tensor<4x1xf32>
  %d = tile.reshape %c : tensor<4x1xf32> -> tensor<2x2xf32>
  %e = tile.reshape %d : tensor<2x2xf32> -> tensor<4x1xf32>
  %g = tile.broadcast %e : tensor<4x1xf32> -> tensor<4x1xf32>
  %h = tile.reduce sum %g axis 1 : tensor<4x1xf32> -> tensor<4x1xf32>
  tile.store %h, %y[%i, %i] : tensor<4x1xf32>, !tile.view<2xf32, mut>
  tile.return
}

// CHECK-LABEL: @compositions
// CHECK: %[[T:.*]] = tile.load
// CHECK: tile.permute %[[T]] [2, 0, 1] : tensor<2x3x4xf32> -> tensor<4x2x3xf32>
// CHECK-NOT: tile.permute
tile.kernel @compositions(%x: !tile.view<3xf32>, %i: index, %f: f32, %y: !tile.view<3xf32, mut>) {
  %t = tile.load %x[%i, %i, %i] fill %f : !tile.view<3xf32> -> tensor<2x3x4xf32>
  %a = tile.permute %t [1, 2, 0] : tensor<2x3x4xf32> -> tensor<3x4x2xf32>
  %b = tile.permute %a [1, 2, 0] : tensor<3x4x2xf32> -> tensor<4x2x3xf32>
  tile.store %b, %y[%i, %i, %i] : tensor<4x2x3xf32>, !tile.view<3xf32, mut>
  tile.return
}

// Only dimensions of extent 1 are exchanged.
// CHECK-LABEL: @permute_moves_nothing
// CHECK: tile.reshape %{{.*}} : tensor<2x1x4xf32> -> tensor<1x2x4xf32>
tile.kernel @permute_moves_nothing(%x: !tile.view<3xf32>, %i: index, %f: f32, %y: !tile.view<3xf32, mut>) {
  %t = tile.load %x[%i, %i, %i] fill %f : !tile.view<3xf32> -> tensor<2x1x4xf32>
  %a = tile.permute %t [1, 0, 2] : tensor<2x1x4xf32> -> tensor<1x2x4xf32>
  tile.store %a, %y[%i, %i, %i] : tensor<1x2x4xf32>, !tile.view<3xf32, mut>
  tile.return
}

// CHECK-LABEL: @constants
// CHECK-DAG: %[[I:.*]] = arith.constant dense<0> : tensor<1xindex>
// CHECK-DAG: %[[A:.*]] = arith.constant dense<0> : tensor<4x1xindex>
// CHECK-DAG: %[[M:.*]] = arith.constant dense<7> : tensor<1x8xi32>
// CHECK: tile.print "{} {} {}"(%[[I]], %[[A]], %[[M]])
tile.kernel @constants(%k: i32) {
  %c = arith.constant dense<7> : tensor<4x8xi32>
  %t = tile.splat %k : i32 -> tensor<4x1xi32>
  %i = tile.iota : tensor<1xindex>
  %a = tile.arg_reduce max %t axis 1 : tensor<4x1xi32> -> tensor<4x1xindex>
  %m = tile.reduce umax %c axis 0 : tensor<4x8xi32> -> tensor<1x8xi32>
  tile.print "{} {} {}" (%i, %a, %m) : tensor<1xindex>, tensor<4x1xindex>, tensor<1x8xi32>
  tile.return
}

// Only the extent of the sliced dimension is the slice's own. Facts reach it.
// CHECK-LABEL: @query_through_slice
// CHECK-SAME: (%[[X:.*]]: !tile.view<2xf32, unit = 1>
// CHECK-DAG: %[[S:.*]] = tile.slice %[[X]], 0 from {{.*}} -> !tile.view<2xf32, unit = 1>
// CHECK-DAG: %[[ROWS:.*]] = tile.dim %[[S]], 0 :
// CHECK-DAG: %[[COLUMNS:.*]] = tile.dim %[[X]], 1 :
// CHECK-DAG: %[[STRIDE:.*]] = tile.stride %[[X]], 0 :
// CHECK: tile.print "{} {} {}"(%[[ROWS]], %[[COLUMNS]], %[[STRIDE]])
tile.kernel @query_through_slice(%x: !tile.view<2xf32, unit = 1>, %i: index, %j: index) {
  %s = tile.slice %x, 0 from %i to %j : !tile.view<2xf32, unit = 1> -> !tile.view<2xf32>
  %r = tile.dim %s, 0 : !tile.view<2xf32>
  %c = tile.dim %s, 1 : !tile.view<2xf32>
  %t = tile.stride %s, 0 : !tile.view<2xf32>
  tile.print "{} {} {}" (%r, %c, %t) : index, index, index
  tile.return
}

// A number that is read back from a tile is the one it was made of, whatever the tile's shape.
// CHECK-LABEL: @scalars
// CHECK-SAME: (%[[F:.*]]: f32, %[[X:.*]]: !tile.view<1xf32>
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2.000000e+00 : f32
// CHECK-DAG: %[[V:.*]] = tile.load %[[X]]
// CHECK: %[[S:.*]] = tile.scalar %[[V]] : tensor<1xf32> -> f32
// CHECK: tile.print "{} {} {}"(%[[F]], %[[TWO]], %[[S]])
tile.kernel @scalars(%f: f32, %x: !tile.view<1xf32>) {
  %c0 = arith.constant 0 : index
  %two = arith.constant dense<2.0> : tensor<1x1xf32>
  %a = tile.splat %f : f32 -> tensor<1x1xf32>
  %b = tile.reshape %a : tensor<1x1xf32> -> tensor<1xf32>
  %v = tile.load %x[%c0] fill %f : !tile.view<1xf32> -> tensor<1xf32>
  %w = tile.reshape %v : tensor<1xf32> -> tensor<1x1xf32>
  %r = tile.scalar %b : tensor<1xf32> -> f32
  %s = tile.scalar %two : tensor<1x1xf32> -> f32
  %t = tile.scalar %w : tensor<1x1xf32> -> f32
  tile.print "{} {} {}" (%r, %s, %t) : f32, f32, f32
  tile.return
}
