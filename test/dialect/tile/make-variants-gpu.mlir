// RUN: kpkg-opt --tile-make-variants=kind=gpu %s | FileCheck %s

// Rows are read and written in whole vectors, the statistics element by element, the weight by its own indices.
// CHECK: tile.kernel @rows__vector(%{{.*}}: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>,
// CHECK-SAME: !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>,
// CHECK-SAME: !tile.view<1xf32, mut, unit = 0, index = 32>,
// CHECK-SAME: !tile.view<3xf32, unit = 2, align = 16, divisible = 4, index = 32>) attributes {variant = "vector"}
// CHECK: tile.drop {{.*}} -> !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>
// CHECK: tile.kernel @rows__vector64(%{{.*}}: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8>,
// CHECK: tile.kernel @rows__unit(%{{.*}}: !tile.view<2xbf16, unit = 1>, %{{.*}}: !tile.view<2xbf16, mut, unit = 1>, %{{.*}}: !tile.view<1xf32, mut, unit = 0>, %{{.*}}: !tile.view<3xf32, unit = 2>)
// CHECK: tile.kernel @rows__any(%{{.*}}: !tile.view<2xbf16>, %{{.*}}: !tile.view<2xbf16, mut>, %{{.*}}: !tile.view<1xf32, mut>, %{{.*}}: !tile.view<3xf32>)
tile.kernel @rows(%x: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>, %s: !tile.view<1xf32, mut>, %w: !tile.view<3xf32>) {
  %zero = arith.constant 0.0 : bf16
  %one = arith.constant dense<1.0> : tensor<1xf32>
  %f = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<1x64xbf16>
  tile.store %v, %y[%c0, %c0] : tensor<1x64xbf16>, !tile.view<2xbf16, mut>
  tile.store %one, %s[%c0] : tensor<1xf32>, !tile.view<1xf32, mut>
  %row = tile.drop %w [0, 1] at (%c0, %c0) : !tile.view<3xf32> -> !tile.view<1xf32>
  %u = tile.load %row[%c0] fill %f : !tile.view<1xf32> -> tensor<64xf32>
  tile.print "{}" (%u) : tensor<64xf32>
  tile.return
}

// A tile of 12 halves is no whole number of vectors, and neither is a column.
// CHECK-NOT: @odd__vector
// CHECK: tile.kernel @odd__unit(%{{.*}}: !tile.view<1xf16, unit = 0>, %{{.*}}: !tile.view<2xf16, mut, unit = 1>)
// CHECK: tile.kernel @odd__any
tile.kernel @odd(%x: !tile.view<1xf16>, %y: !tile.view<2xf16, mut>) {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !tile.view<1xf16> -> tensor<12xf16>
  %r = tile.reshape %v : tensor<12xf16> -> tensor<12x1xf16>
  tile.store %r, %y[%c0, %c0] : tensor<12x1xf16>, !tile.view<2xf16, mut>
  tile.return
}

// Either dimension of a dot operand may be the contiguous one.
// CHECK: tile.kernel @product__vector(%{{.*}}: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>, %{{.*}}: !tile.view<3xbf16, unit = 2, align = 16, divisible = 8, index = 32, outer = 1>, %{{.*}}: !tile.view<2xbf16, mut, unit = 1,
// CHECK: tile.kernel @product__vector_tn(%{{.*}}: !tile.view<2xbf16, unit = 0, align = 16, divisible = 8, index = 32>, %{{.*}}: !tile.view<3xbf16, unit = 2, {{.*}}) attributes {variant = "vector_tn"}
// CHECK: tile.kernel @product__vector_nt(%{{.*}}: !tile.view<2xbf16, unit = 1, {{.*}}, %{{.*}}: !tile.view<3xbf16, unit = 1, align = 16, divisible = 8, index = 32, outer = 1>, %{{.*}}: !tile.view<2xbf16, mut, unit = 1,
// CHECK: tile.drop {{.*}} -> !tile.view<2xbf16, unit = 0, align = 16, divisible = 8, index = 32>
// CHECK: tile.kernel @product__vector_tt(
// CHECK: tile.kernel @product__vector64(
// CHECK: tile.kernel @product__unit(
// CHECK: tile.kernel @product__any(
tile.kernel @product(%a: !tile.view<2xbf16>, %b: !tile.view<3xbf16>, %d: !tile.view<2xbf16, mut>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<16x16xf32>
  %x = tile.load %a[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<16x16xbf16>
  %e = tile.drop %b [0] at (%c0) : !tile.view<3xbf16> -> !tile.view<2xbf16>
  %y = tile.load %e[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<16x16xbf16>
  %s = tile.dot %x, %y, %zeros : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32>
  %r = arith.truncf %s : tensor<16x16xf32> to tensor<16x16xbf16>
  tile.store %r, %d[%c0, %c0] : tensor<16x16xbf16>, !tile.view<2xbf16, mut>
  tile.return
}

// An elementwise gather from a row does not affect the row's own vector loads. A view that is only gathered from has no
// vectors.
// CHECK: tile.kernel @picked__vector(%{{.*}}: !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>, %{{.*}}: !tile.view<1xf32, unit = 0, index = 32>,
tile.kernel @picked(%x: !tile.view<2xf32>, %w: !tile.view<1xf32>, %y: !tile.view<1xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !tile.view<2xf32> -> tensor<1x64xf32>
  %row = tile.drop %x [0] at (%c0) : !tile.view<2xf32> -> !tile.view<1xf32>
  %i = arith.constant dense<3> : tensor<1xindex>
  %p = tile.gather %row[%i] fill %zero : !tile.view<1xf32>, tensor<1xindex> -> tensor<1xf32>
  %q = tile.gather %w[%i] fill %zero : !tile.view<1xf32>, tensor<1xindex> -> tensor<1xf32>
  %s = arith.addf %p, %q : tensor<1xf32>
  tile.store %s, %y[%c0] : tensor<1xf32>, !tile.view<1xf32, mut>
  tile.print "{}" (%v) : tensor<1x64xf32>
  tile.return
}

// A tensor that is only read as scalars gets no facts about its strides. A slice of rows keeps whole vectors, but a
// slice of columns does not.
// CHECK: tile.kernel @parts__vector(%{{.*}}: !tile.view<1xi32, index = 32>, %{{.*}}: !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>, %{{.*}}: !tile.view<2xf32, mut, unit = 1, index = 32>)
// CHECK: tile.slice {{.*}}, 0 {{.*}} -> !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
// CHECK: tile.slice {{.*}}, 1 {{.*}} -> !tile.view<2xf32, mut, unit = 1, index = 32>
tile.kernel @parts(%ends: !tile.view<1xi32>, %x: !tile.view<2xf32>, %y: !tile.view<2xf32, mut>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %one = tile.drop %ends [0] at (%c0) : !tile.view<1xi32> -> !tile.view<0xi32>
  %e = tile.load %one[] fill %none : !tile.view<0xi32> -> i32
  %end = arith.index_cast %e : i32 to index
  %rows = tile.slice %x, 0 from %c0 to %end : !tile.view<2xf32> -> !tile.view<2xf32>
  %columns = tile.slice %y, 1 from %c0 to %end : !tile.view<2xf32, mut> -> !tile.view<2xf32, mut>
  %v = tile.load %rows[%c0, %c0] fill %zero : !tile.view<2xf32> -> tensor<4x16xf32>
  tile.store %v, %columns[%c0, %c0] : tensor<4x16xf32>, !tile.view<2xf32, mut>
  tile.return
}

// Gathered and scattered pieces of rows are vectors if the start of a row is provably a multiple of a vector. Pieces
// with other starts are not.
// CHECK: tile.kernel @pieces__vector(%{{.*}}: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>, %{{.*}}: !tile.view<2xbf16, unit = 1, index = 32>,
// CHECK-SAME: !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>,
tile.kernel @pieces(%x: !tile.view<2xbf16>, %w: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>, %block: index) {
  %zero = arith.constant 0.0 : bf16
  %c16 = arith.constant 16 : index
  %r = arith.constant dense<3> : tensor<4x1xindex>
  %rows = tile.broadcast %r : tensor<4x1xindex> -> tensor<4x16xindex>
  %i = tile.iota : tensor<16xindex>
  %j = tile.reshape %i : tensor<16xindex> -> tensor<1x16xindex>
  %first = arith.muli %block, %c16 : index
  %at = tile.splat %first : index -> tensor<1x16xindex>
  %c = arith.addi %at, %j : tensor<1x16xindex>
  %columns = tile.broadcast %c : tensor<1x16xindex> -> tensor<4x16xindex>
  %any = tile.splat %block : index -> tensor<1x16xindex>
  %d = arith.addi %any, %j : tensor<1x16xindex>
  %others = tile.broadcast %d : tensor<1x16xindex> -> tensor<4x16xindex>
  %v = tile.gather %x[%rows, %columns] fill %zero : !tile.view<2xbf16>, tensor<4x16xindex> -> tensor<4x16xbf16>
  %o = tile.gather %w[%rows, %others] fill %zero : !tile.view<2xbf16>, tensor<4x16xindex> -> tensor<4x16xbf16>
  %s = arith.addf %v, %o : tensor<4x16xbf16>
  tile.scatter %s, %y[%rows, %columns] : tensor<4x16xbf16>, !tile.view<2xbf16, mut>, tensor<4x16xindex>
  tile.return
}

// Rows that a scatter writes are whole vectors, in arguments and in parts of them. Single elements are not.
// CHECK: tile.kernel @scatters__vector(%{{.*}}: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>, %{{.*}}: !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>,
// CHECK-SAME: %{{.*}}: !tile.view<2xbf16, mut, unit = 1, index = 32>, %{{.*}}: !tile.view<3xbf16, mut, unit = 2, align = 16, divisible = 8, index = 32>)
tile.kernel @scatters(%x: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>, %z: !tile.view<2xbf16, mut>, %b: !tile.view<3xbf16, mut>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<16x64xbf16>
  %i = tile.iota : tensor<16xindex>
  %j = tile.iota : tensor<64xindex>
  %column = tile.reshape %i : tensor<16xindex> -> tensor<16x1xindex>
  %line = tile.reshape %j : tensor<64xindex> -> tensor<1x64xindex>
  %r = tile.broadcast %column : tensor<16x1xindex> -> tensor<16x64xindex>
  %c = tile.broadcast %line : tensor<1x64xindex> -> tensor<16x64xindex>
  tile.scatter %v, %y[%r, %c] : tensor<16x64xbf16>, !tile.view<2xbf16, mut>, tensor<16x64xindex>
  tile.scatter %v, %z[%c, %r] : tensor<16x64xbf16>, !tile.view<2xbf16, mut>, tensor<16x64xindex>
  %d = tile.drop %b [0] at (%c0) : !tile.view<3xbf16, mut> -> !tile.view<2xbf16, mut>
  tile.scatter %v, %d[%r, %c] : tensor<16x64xbf16>, !tile.view<2xbf16, mut>, tensor<16x64xindex>
  tile.return
}

// A row of statistics beside a product has about one number per thread. It may have any number of rows, at any start. A
// row that is read must be in whole vectors.
// CHECK: tile.kernel @statistics__vector(%{{.*}}: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>, %{{.*}}: !tile.view<1xf32, unit = 0, align = 16, divisible = 4, index = 32>, %{{.*}}: !tile.view<2xf32, mut, unit = 1, index = 32>) attributes
tile.kernel @statistics(%a: !tile.view<2xbf16>, %x: !tile.view<1xf32>, %s: !tile.view<2xf32, mut>) {
  %zero = arith.constant 0.0 : bf16
  %f = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<16x16xf32>
  %t = tile.load %a[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<16x16xbf16>
  %d = tile.dot %t, %t, %zeros : tensor<16x16xbf16>, tensor<16x16xbf16>, tensor<16x16xf32>
  tile.print "{}" (%d) : tensor<16x16xf32>
  %v = tile.load %x[%c0] fill %f : !tile.view<1xf32> -> tensor<16xf32>
  %row = tile.drop %s [0] at (%c0) : !tile.view<2xf32, mut> -> !tile.view<1xf32, mut>
  tile.store %v, %row[%c0] : tensor<16xf32>, !tile.view<1xf32, mut>
  tile.return
}
