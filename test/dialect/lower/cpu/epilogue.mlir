// Tests code after a product: stores in arms of branches, loops that end with the result, and absent addends.
// RUN: kpkg-opt %s --split-input-file --lower-cpu-emit | FileCheck %s

// Each arm is a separate nest that stores. Rows and columns end with the view, and no element tests the branch.
// CHECK-LABEL: llvm.func @branches
// CHECK:       scf.if
// CHECK:         scf.for
// CHECK:           arith.maximumf
// CHECK:           llvm.store %{{.*}} : vector<8xf32>
// CHECK:       } else {
// CHECK-NOT:     arith.maximumf
// CHECK:         llvm.store %{{.*}} : vector<8xf32>
// CHECK-NOT:   arith.select %{{.*}} : vector
// CHECK:       llvm.return
tile.kernel @branches(%a: !tile.view<2xf32, unit = 1>, %d: !tile.view<2xf32, mut, unit = 1>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %i = tile.block_id x
  %s = tile.load %a[%i, %c0] fill %f : !tile.view<2xf32, unit = 1> -> tensor<16x64xf32>
  %is = arith.cmpi eq, %n, %c1 : index
  %r = scf.if %is -> tensor<16x64xf32> {
    %m = arith.maximumf %s, %zero : tensor<16x64xf32>
    scf.yield %m : tensor<16x64xf32>
  } else {
    scf.yield %s : tensor<16x64xf32>
  }
  %t = arith.addf %r, %r : tensor<16x64xf32>
  tile.store %t, %d[%i, %c0] : tensor<16x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// -----

// A select on a scalar with an expensive side becomes a branch, so that the exponential is only computed if it is
// selected.
// CHECK-LABEL: llvm.func @selects
// CHECK-SAME:  kpkg.scratch = 0
// CHECK:       scf.if
// CHECK:         math.exp %{{.*}} : vector<8xf32>
// CHECK:       } else {
// CHECK-NOT:     math.exp
// CHECK:       llvm.return
tile.kernel @selects(%a: !tile.view<2xf32, unit = 1>, %d: !tile.view<2xf32, mut, unit = 1>, %is: i1) {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %s = tile.load %a[%c0, %c0] fill %f : !tile.view<2xf32, unit = 1> -> tensor<16x64xf32>
  %e = math.exp %s : tensor<16x64xf32>
  %r = arith.select %is, %e, %s : tensor<16x64xf32>
  tile.store %r, %d[%c0, %c0] : tensor<16x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// -----

// The accumulator is filled with zeros only as far as the store reaches.
// CHECK-LABEL: llvm.func @accumulates
// CHECK-DAG:   %[[ZEROS:.*]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK:       %[[ROWS:.*]] = arith.minsi
// CHECK:       scf.for %{{.*}} = %c0 to %[[ROWS]] step
// CHECK:         scf.for
// CHECK:           llvm.store %[[ZEROS]]
tile.kernel @accumulates(%a: !tile.view<2xf32, unit = 1>, %b: !tile.view<2xf32, unit = 1>, %d: !tile.view<2xf32, mut, unit = 1>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 0.0 : f32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%x = %zero) -> tensor<16x64xf32> {
    %u = tile.load %a[%c0, %i] fill %f : !tile.view<2xf32, unit = 1> -> tensor<16x16xf32>
    %v = tile.load %b[%i, %c0] fill %f : !tile.view<2xf32, unit = 1> -> tensor<16x64xf32>
    %w = tile.dot %u, %v, %x : tensor<16x16xf32>, tensor<16x64xf32>, tensor<16x64xf32>
    scf.yield %w : tensor<16x64xf32>
  }
  %row = arith.muli %n, %n : index
  tile.store %s, %d[%row, %c0] : tensor<16x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// -----

// Rows that are not stored are not reduced.
// CHECK-LABEL: llvm.func @reduces
// CHECK:       %[[ROWS:.*]] = arith.minsi %{{.*}}, %c16
// CHECK:       scf.for %{{.*}} = %c0 to %[[ROWS]] step
// CHECK:         arith.maximumf
tile.kernel @reduces(%a: !tile.view<2xf32, unit = 1>, %d: !tile.view<2xf32, mut, unit = 1>) {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %i = tile.block_id x
  %s = tile.load %a[%i, %c0] fill %f : !tile.view<2xf32, unit = 1> -> tensor<16x64xf32>
  %top = tile.reduce max %s axis 1 : tensor<16x64xf32> -> tensor<16x1xf32>
  %all = tile.broadcast %top : tensor<16x1xf32> -> tensor<16x64xf32>
  %r = arith.subf %s, %all : tensor<16x64xf32>
  tile.store %r, %d[%i, %c0] : tensor<16x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// -----

// An absent bias reads as a line of fills, without a mask: the unmasked loop covers whole rows.
// CHECK-LABEL: llvm.func @adds
// CHECK:       %[[LINE:.*]] = llvm.alloca %{{.*}} x vector<8xf32>
// CHECK:       llvm.select %{{.*}}, %[[LINE]], %{{.*}} : i1, !llvm.ptr
// CHECK:       scf.for
// CHECK-NOT:     masked.load
// CHECK:         arith.addf %{{.*}} : vector<8xf32>
tile.kernel @adds(%a: !tile.view<2xf32, unit = 1>, %bias: !tile.view<1xf32, unit = 0>, %d: !tile.view<2xf32, mut, unit = 1>) attributes {tile.optional = array<i64: 1>} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %i = tile.block_id x
  %s = tile.load %a[%i, %c0] fill %f : !tile.view<2xf32, unit = 1> -> tensor<1x64xf32>
  %b = tile.load %bias[%c0] fill %f : !tile.view<1xf32, unit = 0> -> tensor<64xf32>
  %l = tile.reshape %b : tensor<64xf32> -> tensor<1x64xf32>
  %r = arith.addf %s, %l : tensor<1x64xf32>
  tile.store %r, %d[%i, %c0] : tensor<1x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}
