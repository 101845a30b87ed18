// Tests folds and canonicalisation of tile.extract and tile.join; prints keep the results alive.
// RUN: kpkg-opt %s --canonicalize | FileCheck %s

!in = !tile.view<2xf32>
!out = !tile.view<2xf32, mut>

// CHECK-LABEL: @nothing_to_do
// CHECK: %[[V:.*]] = tile.load
// CHECK-NEXT: tile.print "{} {}"(%[[V]], %[[V]])
tile.kernel @nothing_to_do(%x: !in, %i: index, %f: f32) {
  %v = tile.load %x[%i, %i] fill %f : !in -> tensor<1x8xf32>
  %a = tile.extract %v [0, 0] step [-1, 1] : tensor<1x8xf32> -> tensor<1x8xf32>
  %b = tile.join %a axis 1 : tensor<1x8xf32> -> tensor<1x8xf32>
  tile.print "{} {}" (%a, %b) : tensor<1x8xf32>, tensor<1x8xf32>
  tile.return
}

// Every second of the reversed elements 7, 6, ..., 0, without the first one: 5, 3, 1.
// CHECK-LABEL: @part_of_part
// CHECK: tile.extract %{{.*}} [0, 5] step [1, -2] : tensor<4x8xf32> -> tensor<4x3xf32>
tile.kernel @part_of_part(%x: !in, %i: index, %f: f32) {
  %v = tile.load %x[%i, %i] fill %f : !in -> tensor<4x8xf32>
  %a = tile.extract %v [0, 7] step [1, -1] : tensor<4x8xf32> -> tensor<4x8xf32>
  %b = tile.extract %a [0, 2] step [1, 2] : tensor<4x8xf32> -> tensor<4x3xf32>
  tile.print "{}" (%b) : tensor<4x3xf32>
  tile.return
}

// CHECK-LABEL: @uniform
// CHECK-SAME: %[[F:.*]]: f32
// CHECK-DAG: %[[SPLAT:.*]] = tile.splat %[[F]] : f32 -> tensor<2x4xf32>
// CHECK-DAG: %[[ONES:.*]] = arith.constant dense<1.000000e+00> : tensor<2x12xf32>
// CHECK-NOT: tile.extract
// CHECK-NOT: tile.join
// CHECK: tile.print "{} {}"(%[[SPLAT]], %[[ONES]])
tile.kernel @uniform(%f: f32) {
  %v = tile.splat %f : f32 -> tensor<4x8xf32>
  %a = tile.extract %v [0, 1] step [1, 2] : tensor<4x8xf32> -> tensor<2x4xf32>
  %one = arith.constant dense<1.0> : tensor<2x8xf32>
  %b = tile.extract %one [0, 0] step [1, 1] : tensor<2x8xf32> -> tensor<2x4xf32>
  %c = tile.join %b, %one axis 1 : tensor<2x4xf32>, tensor<2x8xf32> -> tensor<2x12xf32>
  tile.print "{} {}" (%a, %c) : tensor<2x4xf32>, tensor<2x12xf32>
  tile.return
}

// CHECK-LABEL: @part_of_broadcast
// CHECK: %[[ROW:.*]] = tile.load
// CHECK: %[[PART:.*]] = tile.extract %[[ROW]] [0, 1] step [1, 2] : tensor<1x8xf32> -> tensor<1x4xf32>
// CHECK: tile.broadcast %[[PART]] : tensor<1x4xf32> -> tensor<2x4xf32>
tile.kernel @part_of_broadcast(%x: !in, %i: index, %f: f32) {
  %v = tile.load %x[%i, %i] fill %f : !in -> tensor<1x8xf32>
  %b = tile.broadcast %v : tensor<1x8xf32> -> tensor<4x8xf32>
  %a = tile.extract %b [2, 1] step [1, 2] : tensor<4x8xf32> -> tensor<2x4xf32>
  tile.print "{}" (%a) : tensor<2x4xf32>
  tile.return
}

// The first extract lies in the second part; the other one crosses the border.
// CHECK-LABEL: @part_of_join
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[W:.*]] = tile.load
// CHECK: %[[JOINED:.*]] = tile.join %[[V]], %[[W]] axis 1
// CHECK: tile.extract %[[W]] [0, 3] step [1, -1] : tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK: tile.extract %[[JOINED]] [0, 7] step [1, 1] : tensor<4x12xf32> -> tensor<4x2xf32>
tile.kernel @part_of_join(%x: !in, %i: index, %j: index, %f: f32) {
  %v = tile.load %x[%i, %i] fill %f : !in -> tensor<4x8xf32>
  %w = tile.load %x[%i, %j] fill %f : !in -> tensor<4x4xf32>
  %b = tile.join %v, %w axis 1 : tensor<4x8xf32>, tensor<4x4xf32> -> tensor<4x12xf32>
  %a = tile.extract %b [0, 11] step [1, -1] : tensor<4x12xf32> -> tensor<4x4xf32>
  %c = tile.extract %b [0, 7] step [1, 1] : tensor<4x12xf32> -> tensor<4x2xf32>
  tile.print "{} {}" (%a, %c) : tensor<4x4xf32>, tensor<4x2xf32>
  tile.return
}

// CHECK-LABEL: @split_and_joined
// CHECK: %[[V:.*]] = tile.load
// CHECK-NEXT: tile.print "{}"(%[[V]])
tile.kernel @split_and_joined(%x: !in, %i: index, %f: f32) {
  %v = tile.load %x[%i, %i] fill %f : !in -> tensor<4x6xf32>
  %a = tile.extract %v [0, 0] step [1, 1] : tensor<4x6xf32> -> tensor<4x2xf32>
  %b = tile.extract %v [0, 2] step [1, 1] : tensor<4x6xf32> -> tensor<4x2xf32>
  %c = tile.extract %v [0, 4] step [1, 1] : tensor<4x6xf32> -> tensor<4x2xf32>
  %d = tile.join %b, %c axis 1 : tensor<4x2xf32>, tensor<4x2xf32> -> tensor<4x4xf32>
  %e = tile.join %a, %d axis 1 : tensor<4x2xf32>, tensor<4x4xf32> -> tensor<4x6xf32>
  tile.print "{}" (%e) : tensor<4x6xf32>
  tile.return
}

// Halves of rows are loaded and stored by themselves.
// CHECK-LABEL: @halves
// CHECK-SAME: (%[[X:.*]]: !tile.view<2xf32>, %[[Y:.*]]: !tile.view<2xf32, mut>, %[[I:.*]]: index
// CHECK: %[[HALF:.*]] = arith.constant 32 : index
// CHECK-DAG: %[[HERE:.*]] = arith.addi %[[I]], %[[HALF]]
// CHECK-DAG: %[[FIRST:.*]] = tile.load %[[X]][%[[I]], %[[I]]] fill %{{.*}} -> tensor<4x32xf32>
// CHECK-DAG: %[[SECOND:.*]] = tile.load %[[X]][%[[I]], %{{.*}}] fill %{{.*}} -> tensor<4x32xf32>
// CHECK-NOT: tile.extract
// CHECK-NOT: tile.join
// CHECK: tile.store %[[SECOND]], %[[Y]][%[[I]], %[[I]]]
// CHECK: tile.store %[[FIRST]], %[[Y]][%[[I]], %{{.*}}]
tile.kernel @halves(%x: !in, %y: !out, %i: index, %f: f32) {
  %v = tile.load %x[%i, %i] fill %f : !in -> tensor<4x64xf32>
  %a = tile.extract %v [0, 0] step [1, 1] : tensor<4x64xf32> -> tensor<4x32xf32>
  %b = tile.extract %v [0, 32] step [1, 1] : tensor<4x64xf32> -> tensor<4x32xf32>
  %c = tile.join %b, %a axis 1 : tensor<4x32xf32>, tensor<4x32xf32> -> tensor<4x64xf32>
  tile.store %c, %y[%i, %i] : tensor<4x64xf32>, !out
  tile.return
}

// Single columns would be read from the same sectors, and the tile is needed as a whole.
// CHECK-LABEL: @shared_sectors
// CHECK: tile.load {{.*}} -> tensor<4x64xf32>
// CHECK-NOT: tile.load
// CHECK: tile.extract
// CHECK: tile.join
// CHECK: tile.store {{.*}} : tensor<4x2xf32>
tile.kernel @shared_sectors(%x: !in, %y: !out, %i: index, %f: f32) {
  %v = tile.load %x[%i, %i] fill %f : !in -> tensor<4x64xf32>
  %a = tile.extract %v [0, 3] step [1, 1] : tensor<4x64xf32> -> tensor<4x1xf32>
  %b = tile.extract %v [0, 9] step [1, 1] : tensor<4x64xf32> -> tensor<4x1xf32>
  %c = tile.join %a, %b axis 1 : tensor<4x1xf32>, tensor<4x1xf32> -> tensor<4x2xf32>
  tile.store %c, %y[%i, %i] : tensor<4x2xf32>, !out
  tile.return
}

// CHECK-LABEL: @whole_and_part
// CHECK: %[[V:.*]] = tile.load {{.*}} -> tensor<4x64xf32>
// CHECK-NOT: tile.load
// CHECK: tile.extract %[[V]]
tile.kernel @whole_and_part(%x: !in, %i: index, %f: f32) {
  %v = tile.load %x[%i, %i] fill %f : !in -> tensor<4x64xf32>
  %a = tile.extract %v [0, 0] step [1, 1] : tensor<4x64xf32> -> tensor<4x32xf32>
  tile.print "{} {}" (%a, %v) : tensor<4x32xf32>, tensor<4x64xf32>
  tile.return
}

// Work on the part stays outside of the loop that takes it.
// CHECK-LABEL: @part_in_loop
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[PART:.*]] = tile.extract %[[V]] [0, 3] step [1, 1] : tensor<4x64xf32> -> tensor<4x1xf32>
// CHECK: %[[E:.*]] = math.exp %[[PART]]
// CHECK: scf.for
// CHECK-NEXT: tile.print "{}"(%[[E]])
tile.kernel @part_in_loop(%x: !in, %i: index, %n: index, %f: f32) {
  %v = tile.load %x[%i, %i] fill %f : !in -> tensor<4x64xf32>
  %e = math.exp %v : tensor<4x64xf32>
  %one = arith.constant 1 : index
  scf.for %k = %i to %n step %one {
    %a = tile.extract %e [0, 3] step [1, 1] : tensor<4x64xf32> -> tensor<4x1xf32>
    tile.print "{}" (%a) : tensor<4x1xf32>
  }
  tile.return
}
