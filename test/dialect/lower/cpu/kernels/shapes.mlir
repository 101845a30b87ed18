// Tests permute, reshape, broadcast and reductions of every axis.
tile.kernel @transpose(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut, unit = 1>)
    attributes {test.args = [["40x33", "33x40"], ["10x20", "20x10"], ["64x64", "70x70"]]} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 2.5 : f32
  %v = tile.load %x[%c0, %c0] fill %f : !tile.view<2xf32, unit = 1> -> tensor<64x40xf32>
  %t = tile.permute %v [1, 0] : tensor<64x40xf32> -> tensor<40x64xf32>
  tile.store %t, %y[%c0, %c0] : tensor<40x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

tile.kernel @reshape(%x: !tile.view<2xi32, unit = 1>, %y: !tile.view<3xi32, mut, unit = 2>, %z: !tile.view<2xi32, mut>)
    attributes {test.args = [["6x20", "2x10x6", "3x40"], ["5x11", "2x10x6", "3x39"]]} {
  %c0 = arith.constant 0 : index
  %f = arith.constant -3 : i32
  %v = tile.load %x[%c0, %c0] fill %f : !tile.view<2xi32, unit = 1> -> tensor<6x20xi32>
  %t = tile.reshape %v : tensor<6x20xi32> -> tensor<2x10x6xi32>
  %u = arith.addi %t, %t : tensor<2x10x6xi32>
  tile.store %u, %y[%c0, %c0, %c0] : tensor<2x10x6xi32>, !tile.view<3xi32, mut, unit = 2>
  %s = tile.reshape %v : tensor<6x20xi32> -> tensor<3x40xi32>
  tile.store %s, %z[%c0, %c0] : tensor<3x40xi32>, !tile.view<2xi32, mut>
  tile.return
}

tile.kernel @reshape_even(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut, unit = 1>)
    attributes {test.args = [["8x64", "32x16"], ["7x50", "30x15"]]} {
  %c0 = arith.constant 0 : index
  %f = arith.constant -3.0 : f32
  %v = tile.load %x[%c0, %c0] fill %f : !tile.view<2xf32, unit = 1> -> tensor<8x64xf32>
  %t = tile.reshape %v : tensor<8x64xf32> -> tensor<32x16xf32>
  tile.store %t, %y[%c0, %c0] : tensor<32x16xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

tile.kernel @reductions(%x: !tile.view<3xf32, unit = 2>, %a: !tile.view<2xf32, mut>, %b: !tile.view<2xf32, mut>, %c: !tile.view<2xf32, mut>)
    attributes {test.args = [["4x6x20", "6x20", "4x20", "4x6"], ["3x5x13", "6x20", "4x20", "4x6"]], test.tolerance = 1.0e-6} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.5 : f32
  %v = tile.load %x[%c0, %c0, %c0] fill %f : !tile.view<3xf32, unit = 2> -> tensor<4x6x20xf32>
  %p = tile.reduce prod %v axis 0 : tensor<4x6x20xf32> -> tensor<1x6x20xf32>
  %pr = tile.reshape %p : tensor<1x6x20xf32> -> tensor<6x20xf32>
  tile.store %pr, %a[%c0, %c0] : tensor<6x20xf32>, !tile.view<2xf32, mut>
  %q = tile.reduce min %v axis 1 : tensor<4x6x20xf32> -> tensor<4x1x20xf32>
  %qr = tile.reshape %q : tensor<4x1x20xf32> -> tensor<4x20xf32>
  tile.store %qr, %b[%c0, %c0] : tensor<4x20xf32>, !tile.view<2xf32, mut>
  %s = tile.reduce sum %v axis 2 : tensor<4x6x20xf32> -> tensor<4x6x1xf32>
  %sr = tile.reshape %s : tensor<4x6x1xf32> -> tensor<4x6xf32>
  tile.store %sr, %c[%c0, %c0] : tensor<4x6xf32>, !tile.view<2xf32, mut>
  tile.return
}

tile.kernel @windows(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut, unit = 1>, %r: index, %c: index)
    attributes {test.args = [["20x50", "20x50", "-3", "-5"], ["20x50", "20x50", "10", "-60"], ["20x50", "20x50", "15", "30"],
                             ["20x50", "20x50", "-100", "0"], ["20x50", "20x50", "9223372036854775800", "0"]]} {
  %f = arith.constant 9.0 : f32
  %v = tile.load %x[%r, %c] fill %f : !tile.view<2xf32, unit = 1> -> tensor<8x40xf32>
  %w = arith.addf %v, %v : tensor<8x40xf32>
  %c2 = arith.constant 2 : index
  %r2 = arith.addi %r, %c2 : index
  tile.store %w, %y[%r2, %c] : tensor<8x40xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

tile.kernel @in_place(%y: !tile.view<1xf32, mut, unit = 0>)
    attributes {test.args = ["50"]} {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %f = arith.constant 1.0 : f32
  %v = tile.load %y[%c0] fill %f : !tile.view<1xf32, mut, unit = 0> -> tensor<40xf32>
  tile.store %v, %y[%c3] : tensor<40xf32>, !tile.view<1xf32, mut, unit = 0>
  %w = arith.addf %v, %v : tensor<40xf32>
  tile.store %w, %y[%c0] : tensor<40xf32>, !tile.view<1xf32, mut, unit = 0>
  tile.return
}
