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
