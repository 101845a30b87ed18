// Additions of zero go, others stay.
// RUN: kpkg-opt --FLAG %s | FileCheck %s

!view = !tile.view<1xf32, mut>

// CHECK-LABEL: tile.kernel @sums
tile.kernel @sums(%y: !view, %i: index, %scalar: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %x = tile.splat %scalar : f32 -> tensor<64xf32>
  %same = arith.addi %i, %c0 : index
  // CHECK: %[[NEXT:.*]] = arith.addi %{{.*}}, %c1
  // CHECK-NOT: arith.addi
  %next = arith.addi %same, %c1 : index
  // CHECK: tile.store %{{.*}}[%[[NEXT]]]
  tile.store %x, %y[%next] : tensor<64xf32>, !view
  tile.return
}
