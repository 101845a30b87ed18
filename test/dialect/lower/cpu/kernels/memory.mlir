// Tests scalars from memory as coordinates and loop bounds, slices, and atomic updates.

// Rows of groups: the bounds of a group are loaded from memory, also from outside the view.
tile.kernel @grouped(%x: !tile.view<2xf32>, %ends: !tile.view<1xi32>, %y: !tile.view<2xf32, mut>) attributes {
    test.args = [["7x5", "6", "6x5"], ["9x5/1x9", "6/-1", "6x5"]], test.grid = [6, 1, 1]} {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %g = tile.block_id x
  %before = arith.subi %g, %c1 : index
  %first = tile.drop %ends [0] at (%before) : !tile.view<1xi32> -> !tile.view<0xi32>
  %last = tile.drop %ends [0] at (%g) : !tile.view<1xi32> -> !tile.view<0xi32>
  %b32 = tile.load %first[] fill %none : !tile.view<0xi32> -> i32
  %e32 = tile.load %last[] fill %none : !tile.view<0xi32> -> i32
  %b = arith.index_cast %b32 : i32 to index
  %e = arith.index_cast %e32 : i32 to index
  %part = tile.slice %x, 0 from %b to %e : !tile.view<2xf32> -> !tile.view<2xf32>
  %n = tile.dim %part, 0 : !tile.view<2xf32>
  %start = arith.constant dense<0.0> : tensor<1x8xf32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %start) -> tensor<1x8xf32> {
    %v = tile.load %part[%i, %c0] fill %zero : !tile.view<2xf32> -> tensor<1x8xf32>
    %t = arith.addf %s, %v : tensor<1x8xf32>
    scf.yield %t : tensor<1x8xf32>
  }
  tile.store %sum, %y[%g, %c0] : tensor<1x8xf32>, !tile.view<2xf32, mut>
  tile.return
}

// Tiles of a slice end with the slice, along both dimensions.
tile.kernel @sliced(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut, unit = 1>, %b: index, %e: index) attributes {
    test.args = [["9x20", "9x20", "2", "7"], ["9x20", "9x20", "-3", "100"], ["9x20", "9x20", "6", "5"], ["9x40/40x1", "9x20", "50", "60"]]} {
  %fill = arith.constant -1.0 : f32
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %rows = tile.slice %x, 0 from %b to %e : !tile.view<2xf32, unit = 1> -> !tile.view<2xf32, unit = 1>
  %both = tile.slice %rows, 1 from %c3 to %e : !tile.view<2xf32, unit = 1> -> !tile.view<2xf32, unit = 1>
  %out = tile.slice %y, 0 from %b to %e : !tile.view<2xf32, mut, unit = 1> -> !tile.view<2xf32, mut, unit = 1>
  %v = tile.load %both[%c0, %c0] fill %fill : !tile.view<2xf32, unit = 1> -> tensor<8x16xf32>
  tile.store %v, %out[%c0, %c3] : tensor<8x16xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// Counts and extremes: coordinates that are outside or masked have no effect.
tile.kernel @counted(%at: !tile.view<1xi64>, %counts: !tile.view<1xi32, mut>, %most: !tile.view<1xi64, mut>, %least: !tile.view<1xf32, mut>, %sums: !tile.view<1xf64, mut>) attributes {
    test.args = ["40", "5", "5", "5", "5"], test.grid = [3, 1, 1]} {
  %none = arith.constant 0 : i64
  %c16 = arith.constant 16 : index
  %one = arith.constant dense<1> : tensor<16xi32>
  %bound = arith.constant dense<3> : tensor<16xindex>
  %block = tile.block_id x
  %from = arith.muli %block, %c16 : index
  %v = tile.load %at[%from] fill %none : !tile.view<1xi64> -> tensor<16xi64>
  %i = arith.index_cast %v : tensor<16xi64> to tensor<16xindex>
  %mask = arith.cmpi ne, %i, %bound : tensor<16xindex>
  tile.atomic add %one, %counts[%i] mask %mask : tensor<16xi32>, !tile.view<1xi32, mut>, tensor<16xindex>
  %lane = tile.iota : tensor<16xindex>
  %wide = arith.index_cast %lane : tensor<16xindex> to tensor<16xi64>
  tile.atomic max %wide, %most[%i] : tensor<16xi64>, !tile.view<1xi64, mut>, tensor<16xindex>
  %f = arith.sitofp %v : tensor<16xi64> to tensor<16xf32>
  tile.atomic min %f, %least[%i] : tensor<16xf32>, !tile.view<1xf32, mut>, tensor<16xindex>
  %d = arith.sitofp %v : tensor<16xi64> to tensor<16xf64>
  tile.atomic add %d, %sums[%i] : tensor<16xf64>, !tile.view<1xf64, mut>, tensor<16xindex>
  tile.return
}

// What updates find: also of elements that the same tile updates before, and 0 where nothing is updated.
tile.kernel @found(%at: !tile.view<1xi64>, %x: !tile.view<1xf16>, %halves: !tile.view<1xf16, mut>, %numbers: !tile.view<1xi32, mut>, %sums: !tile.view<1xf64, mut>, %old: !tile.view<2xf16, mut>, %older: !tile.view<2xi32, mut>, %oldest: !tile.view<1xf64, mut>) attributes {
    test.args = ["20", "20", "5", "5", "5", "2x20", "2x20", "20"], test.grid = [1, 1, 1]} {
  %none = arith.constant 0 : i64
  %fill = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %bound = arith.constant dense<3> : tensor<16xindex>
  %five = arith.constant dense<5> : tensor<16xi32>
  %v = tile.load %at[%c0] fill %none : !tile.view<1xi64> -> tensor<16xi64>
  %h = tile.load %x[%c0] fill %fill : !tile.view<1xf16> -> tensor<16xf16>
  %i = arith.index_cast %v : tensor<16xi64> to tensor<16xindex>
  %mask = arith.cmpi ne, %i, %bound : tensor<16xindex>
  %a = tile.atomic add %h, %halves[%i] mask %mask : tensor<16xf16>, !tile.view<1xf16, mut>, tensor<16xindex> -> tensor<16xf16>
  %row = tile.drop %old [0] at (%c0) : !tile.view<2xf16, mut> -> !tile.view<1xf16, mut>
  tile.store %a, %row[%c0] : tensor<16xf16>, !tile.view<1xf16, mut>
  %n = arith.trunci %v : tensor<16xi64> to tensor<16xi32>
  %b = tile.atomic exchange %n, %numbers[%i] : tensor<16xi32>, !tile.view<1xi32, mut>, tensor<16xindex> -> tensor<16xi32>
  %c = tile.atomic compare_exchange %five, %numbers[%i] mask %mask expected %b : tensor<16xi32>, !tile.view<1xi32, mut>, tensor<16xindex> -> tensor<16xi32>
  %row0 = tile.drop %older [0] at (%c0) : !tile.view<2xi32, mut> -> !tile.view<1xi32, mut>
  %row1 = tile.drop %older [0] at (%c1) : !tile.view<2xi32, mut> -> !tile.view<1xi32, mut>
  tile.store %b, %row0[%c0] : tensor<16xi32>, !tile.view<1xi32, mut>
  tile.store %c, %row1[%c0] : tensor<16xi32>, !tile.view<1xi32, mut>
  %d = arith.sitofp %v : tensor<16xi64> to tensor<16xf64>
  %m = tile.atomic max %d, %sums[%i] : tensor<16xf64>, !tile.view<1xf64, mut>, tensor<16xindex> -> tensor<16xf64>
  %w = tile.atomic compare_exchange %d, %sums[%i] expected %m : tensor<16xf64>, !tile.view<1xf64, mut>, tensor<16xindex> -> tensor<16xf64>
  %t = arith.addf %m, %w : tensor<16xf64>
  tile.store %t, %oldest[%c0] : tensor<16xf64>, !tile.view<1xf64, mut>
  tile.return
}
