// Tests which tiles share a pass over a row, and which get memory.
// RUN: kpkg-opt %s --split-input-file --lower-cpu-emit | FileCheck %s

// One pass computes, sums and stores the exponentials (rows of scratch memory); the maximum takes an earlier pass. The
// exponential of the fill is computed separately only if no vector has a lane behind the row's end.
// CHECK-LABEL: llvm.func @softmax
// CHECK-SAME:  kpkg.scratch = 2240
// CHECK:       scf.for {{.*}} -> (vector<8xf32>
// CHECK:         arith.maximumf
// CHECK-NOT:   math.exp
// CHECK:       scf.for {{.*}} -> (vector<8xf32>
// CHECK:         math.exp %{{.*}} : vector<8xf32>
// CHECK:         llvm.store %{{.*}} : vector<8xf32>
// CHECK:         arith.addf %{{.*}} : vector<8xf32>
// CHECK:       scf.if
// CHECK:         vector.extract %{{.*}}[7] : f32 from vector<8xf32>
// CHECK:       } else {
// CHECK:         math.exp %{{.*}} : f32
// CHECK-NOT:   math.exp
// CHECK:       arith.divf %{{.*}} : vector<8xf32>
tile.kernel @softmax(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut, unit = 1>) {
  %inf = arith.constant 0xFF800000 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %inf : !tile.view<2xf32, unit = 1> -> tensor<1x64xf32>
  %m = tile.reduce max %v axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
  %mb = tile.broadcast %m : tensor<1x1xf32> -> tensor<1x64xf32>
  %d = arith.subf %v, %mb : tensor<1x64xf32>
  %e = math.exp %d : tensor<1x64xf32>
  %s = tile.reduce sum %e axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
  %sb = tile.broadcast %s : tensor<1x1xf32> -> tensor<1x64xf32>
  %r = arith.divf %e, %sb : tensor<1x64xf32>
  tile.store %r, %y[%row, %c0] : tensor<1x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// -----

// Two sums of one row share a pass. Whole vectors need no comparison with the row's length.
// CHECK-LABEL: llvm.func @moments
// CHECK:       scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>
// CHECK-NOT:     vector<8xindex>
// CHECK:         arith.mulf
// CHECK:         arith.addf
// CHECK:         arith.addf
// CHECK:         scf.yield
// CHECK-NOT:   scf.for {{.*}} iter_args({{.*}}) -> (vector<8xf32>)
tile.kernel @moments(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<1xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = tile.block_id x
  %n = tile.dim %x, 1 : !tile.view<2xf32, unit = 1>
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<1x64xf32>
  %i = tile.iota : tensor<64xindex>
  %ir = tile.reshape %i : tensor<64xindex> -> tensor<1x64xindex>
  %ns = tile.splat %n : index -> tensor<1x64xindex>
  %in = arith.cmpi slt, %ir, %ns : tensor<1x64xindex>
  %one = arith.constant dense<1.0> : tensor<1x64xf32>
  %z = arith.constant dense<0.0> : tensor<1x64xf32>
  %w = arith.addf %v, %one : tensor<1x64xf32>
  %u = arith.select %in, %w, %z : tensor<1x64xi1>, tensor<1x64xf32>
  %q = arith.mulf %u, %u : tensor<1x64xf32>
  %s = tile.reduce sum %u axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
  %t = tile.reduce sum %q axis 1 : tensor<1x64xf32> -> tensor<1x1xf32>
  %r = arith.mulf %s, %t : tensor<1x1xf32>
  %rr = tile.reshape %r : tensor<1x1xf32> -> tensor<1xf32>
  tile.store %rr, %y[%row] : tensor<1xf32>, !tile.view<1xf32, mut>
  tile.return
}

// -----

// Nested loops keep an accumulator in place, and both branches store from there. One buffer suffices, and nothing is
// copied between the products and the store.
// CHECK-LABEL: llvm.func @carried
// CHECK-SAME:  kpkg.scratch = 3392
// CHECK-COUNT-3: scf.for %{{.*}} step %c{{8|16}} {
// CHECK:       scf.for %{{.*}} = %c0 to %[[N:[0-9]+]] step %c1 {
// CHECK-NOT:   llvm.store
// CHECK:         scf.for %{{.*}} = %c0 to %[[N]] step
// CHECK:       scf.if
// CHECK:         arith.maximumf
// CHECK:         llvm.store %{{.*}} : vector<8xf32>
// CHECK:       } else {
// CHECK-NOT:     arith.maximumf
// CHECK:         llvm.store %{{.*}} : vector<8xf32>
tile.kernel @carried(%a: !tile.view<2xf32, unit = 1>, %b: !tile.view<2xf32, unit = 1>, %d: !tile.view<2xf32, mut, unit = 1>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero) -> tensor<16x16xf32> {
    %t = scf.for %j = %c0 to %n step %c1 iter_args(%y = %x) -> tensor<16x16xf32> {
      %u = tile.load %a[%i, %j] fill %f : !tile.view<2xf32, unit = 1> -> tensor<16x16xf32>
      %v = tile.load %b[%j, %i] fill %f : !tile.view<2xf32, unit = 1> -> tensor<16x16xf32>
      %w = tile.dot %u, %v, %y : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
      scf.yield %w : tensor<16x16xf32>
    }
    scf.yield %t : tensor<16x16xf32>
  }
  %is = arith.cmpi eq, %n, %c1 : index
  %r = scf.if %is -> tensor<16x16xf32> {
    %m = arith.maximumf %s, %zero : tensor<16x16xf32>
    scf.yield %m : tensor<16x16xf32>
  } else {
    scf.yield %s : tensor<16x16xf32>
  }
  tile.store %r, %d[%c0, %c0] : tensor<16x16xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}
