// Tests branches and loops that carry tiles.
tile.kernel @branch(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut, unit = 1>, %k: index)
    attributes {test.args = [["4x40", "4x40", "0"], ["4x40", "4x40", "3"]], test.tolerance = 1.0e-6} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 0.0 : f32
  %v = tile.load %x[%c0, %c0] fill %f : !tile.view<2xf32, unit = 1> -> tensor<4x40xf32>
  %e = math.exp %v : tensor<4x40xf32>
  %p = arith.cmpi sgt, %k, %c0 : index
  %r, %s = scf.if %p -> (tensor<4x40xf32>, index) {
    %a = arith.addf %e, %v : tensor<4x40xf32>
    scf.yield %a, %c1 : tensor<4x40xf32>, index
  } else {
    %a = arith.mulf %e, %e : tensor<4x40xf32>
    scf.yield %a, %c0 : tensor<4x40xf32>, index
  }
  %t = arith.addf %r, %e : tensor<4x40xf32>
  tile.store %t, %y[%s, %s] : tensor<4x40xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// The two carried tiles are swapped in each step.
tile.kernel @swap(%x: !tile.view<2xi32, unit = 1>, %y: !tile.view<2xi32, mut, unit = 1>, %z: !tile.view<2xi32, mut, unit = 1>, %k: index)
    attributes {test.args = [["8x8", "8x8", "8x8", "0"], ["8x8", "8x8", "8x8", "3"]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0] fill %f : !tile.view<2xi32, unit = 1> -> tensor<8x8xi32>
  %w = arith.addi %v, %v : tensor<8x8xi32>
  %r:2 = scf.for %i = %c0 to %k step %c1 iter_args(%a = %v, %b = %w) -> (tensor<8x8xi32>, tensor<8x8xi32>) {
    %t = tile.permute %a [1, 0] : tensor<8x8xi32> -> tensor<8x8xi32>
    %n = arith.addi %b, %t : tensor<8x8xi32>
    scf.yield %n, %a : tensor<8x8xi32>, tensor<8x8xi32>
  }
  tile.store %r#0, %y[%c0, %c0] : tensor<8x8xi32>, !tile.view<2xi32, mut, unit = 1>
  tile.store %r#1, %z[%c0, %c0] : tensor<8x8xi32>, !tile.view<2xi32, mut, unit = 1>
  tile.return
}

tile.kernel @newton(%x: !tile.view<1xf64, unit = 0>, %y: !tile.view<1xf64, mut, unit = 0>)
    attributes {test.args = ["40", "40"], test.tolerance = 1.0e-12} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  %f = arith.constant 0.0 : f64
  %v = tile.load %x[%c0] fill %f : !tile.view<1xf64, unit = 0> -> tensor<40xf64>
  %a = math.absf %v : tensor<40xf64>
  %one = arith.constant dense<1.0> : tensor<40xf64>
  %half = arith.constant dense<0.5> : tensor<40xf64>
  %n, %r = scf.while (%i = %c0, %g = %one) : (index, tensor<40xf64>) -> (index, tensor<40xf64>) {
    %p = arith.cmpi slt, %i, %c9 : index
    scf.condition(%p) %i, %g : index, tensor<40xf64>
  } do {
  ^bb0(%i: index, %g: tensor<40xf64>):
    %q = arith.divf %a, %g : tensor<40xf64>
    %s = arith.addf %q, %g : tensor<40xf64>
    %h = arith.mulf %s, %half : tensor<40xf64>
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %h : index, tensor<40xf64>
  }
  tile.store %r, %y[%c0] : tensor<40xf64>, !tile.view<1xf64, mut, unit = 0>
  tile.return
}

// The loop ends when no element of the tile changes by much, which a reduction tells.
tile.kernel @until_settled(%x: !tile.view<2xf64, unit = 1>, %y: !tile.view<2xf64, mut, unit = 1>, %z: !tile.view<1xindex, mut, unit = 0>)
    attributes {test.args = [["4x40", "4x40", "1"], ["3x9", "3x9", "1"]], test.tolerance = 1.0e-12} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f64
  %limit = arith.constant 1.0e-3 : f64
  %v = tile.load %x[%c0, %c0] fill %f : !tile.view<2xf64, unit = 1> -> tensor<4x40xf64>
  %a = math.absf %v : tensor<4x40xf64>
  %one = arith.constant dense<1.0> : tensor<4x40xf64>
  %half = arith.constant dense<0.5> : tensor<4x40xf64>
  %n, %last, %r = scf.while (%i = %c0, %d = %f, %g = %one) : (index, f64, tensor<4x40xf64>) -> (index, f64, tensor<4x40xf64>) {
    %p = arith.cmpf ogt, %d, %limit : f64
    scf.condition(%p) %i, %d, %g : index, f64, tensor<4x40xf64>
  } do {
  ^bb0(%i: index, %d: f64, %g: tensor<4x40xf64>):
    %s = arith.addf %a, %g : tensor<4x40xf64>
    %h = arith.mulf %s, %half : tensor<4x40xf64>
    %e = arith.subf %h, %g : tensor<4x40xf64>
    %m = math.absf %e : tensor<4x40xf64>
    %rows = tile.reduce max %m axis 1 : tensor<4x40xf64> -> tensor<4x1xf64>
    %all = tile.reduce max %rows axis 0 : tensor<4x1xf64> -> tensor<1x1xf64>
    %next = tile.scalar %all : tensor<1x1xf64> -> f64
    %j = arith.addi %i, %c1 : index
    scf.yield %j, %next, %h : index, f64, tensor<4x40xf64>
  }
  tile.store %r, %y[%c0, %c0] : tensor<4x40xf64>, !tile.view<2xf64, mut, unit = 1>
  %count = tile.splat %n : index -> tensor<1xindex>
  tile.store %count, %z[%c0] : tensor<1xindex>, !tile.view<1xindex, mut, unit = 0>
  tile.return
}

// A tile gives the end of a loop, a branch, and the row that is read.
tile.kernel @led_by_tile(%x: !tile.view<2xi32, unit = 1>, %y: !tile.view<2xi32, mut, unit = 1>)
    attributes {test.args = [["8x16", "8x16"], ["5x3", "8x16"]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f = arith.constant 0 : i32
  %v = tile.load %x[%c0, %c0] fill %f : !tile.view<2xi32, unit = 1> -> tensor<8x16xi32>
  %seven = arith.constant dense<7> : tensor<8x16xi32>
  %low = arith.andi %v, %seven : tensor<8x16xi32>
  %rows = tile.reduce max %low axis 1 : tensor<8x16xi32> -> tensor<8x1xi32>
  %all = tile.reduce max %rows axis 0 : tensor<8x1xi32> -> tensor<1x1xi32>
  %s = tile.scalar %all : tensor<1x1xi32> -> i32
  %n = arith.index_cast %s : i32 to index
  %zero = arith.constant dense<0> : tensor<1x16xi32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%t = %zero) -> (tensor<1x16xi32>) {
    %row = tile.load %x[%i, %c0] fill %f : !tile.view<2xi32, unit = 1> -> tensor<1x16xi32>
    %t1 = arith.addi %t, %row : tensor<1x16xi32>
    scf.yield %t1 : tensor<1x16xi32>
  }
  %least = tile.reduce min %sum axis 1 : tensor<1x16xi32> -> tensor<1x1xi32>
  %l = tile.scalar %least : tensor<1x1xi32> -> i32
  %p = arith.cmpi slt, %l, %f : i32
  scf.if %p {
    tile.store %sum, %y[%c1, %c0] : tensor<1x16xi32>, !tile.view<2xi32, mut, unit = 1>
  }
  %place = arith.index_cast %s : i32 to index
  tile.store %sum, %y[%place, %c0] : tensor<1x16xi32>, !tile.view<2xi32, mut, unit = 1>
  tile.return
}
