// Tests which kernels compute several rows at once, and the extent of a batch.
// RUN: kpkg-opt %s --split-input-file --lower-cpu-emit | FileCheck %s

// Rows of up to 256 elements are batched by 8 along one line of the grid, and a batch ends with the line. Each pass
// covers all rows of a batch. The weight is the same for all rows, and the mean is a vector over rows.
// CHECK-LABEL: llvm.func @centred
// CHECK:       %[[WIDTH:[0-9]+]] = arith.maxsi %{{.*}}, %c1
// CHECK:       scf.for %[[LINE:.*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK:         %[[FIRST:[0-9]+]] = arith.muli %[[LINE]], %[[WIDTH]]
// CHECK:         %[[LEFT:[0-9]+]] = arith.subi %{{.*}}, %[[FIRST]]
// CHECK:         %[[STOP:[0-9]+]] = arith.minsi %[[LEFT]], %[[WIDTH]]
// CHECK:         scf.for %[[ROW:.*]] = %{{.*}} to %[[STOP]] step %c8 {
// CHECK:           %[[NEXT:[0-9]+]] = arith.addi %[[ROW]], %c8
// CHECK:           arith.minsi %[[NEXT]], %[[STOP]]
// CHECK:           scf.for %{{.*}} = %c0 to %{{.*}} step %c1 {
// CHECK:             scf.for {{.*}} -> (vector<8xf32>
// CHECK:               arith.addf
// CHECK:           scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c1 {
// CHECK:             arith.mulf %{{.*}} : vector<8xf32>
// CHECK:             llvm.store %{{.*}} : vector<8xf32>
// CHECK:           scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8 {
// CHECK:             llvm.intr.masked.store %{{.*}} : vector<8xf32>
tile.kernel @centred(%x: !tile.view<2xf32, unit = 1>, %w: !tile.view<1xf32, unit = 0>, %y: !tile.view<2xf32, mut, unit = 1>, %mean: !tile.view<1xf32, mut, unit = 0>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<1x256xf32>
  %s = tile.reduce sum %v axis 1 : tensor<1x256xf32> -> tensor<1x1xf32>
  %sb = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x256xf32>
  %d = arith.subf %v, %sb : tensor<1x256xf32>
  %wv = tile.load %w[%c0] fill %zero : !tile.view<1xf32, unit = 0> -> tensor<256xf32>
  %wr = tile.reshape %wv : tensor<256xf32> -> tensor<1x256xf32>
  %r = arith.mulf %d, %wr : tensor<1x256xf32>
  tile.store %r, %y[%row, %c0] : tensor<1x256xf32>, !tile.view<2xf32, mut, unit = 1>
  %m = tile.reshape %s : tensor<1x1xf32> -> tensor<1xf32>
  tile.store %m, %mean[%row] : tensor<1xf32>, !tile.view<1xf32, mut, unit = 0>
  tile.return
}

// -----

// Longer rows fill the cache by themselves.
// CHECK-LABEL: llvm.func @long
// CHECK:       scf.for %[[BLOCK:.*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK-NEXT:    arith.divui %[[BLOCK]]
tile.kernel @long(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut, unit = 1>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<1x4096xf32>
  tile.store %v, %y[%row, %c0] : tensor<1x4096xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// -----

// A row whose number is not the block's is not batched.
// CHECK-LABEL: llvm.func @next
// CHECK:       scf.for %[[BLOCK:.*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK-NEXT:    arith.divui %[[BLOCK]]
tile.kernel @next(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut, unit = 1>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = tile.block_id x
  %other = arith.addi %row, %c1 : index
  %v = tile.load %x[%other, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<1x64xf32>
  tile.store %v, %y[%row, %c0] : tensor<1x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}
