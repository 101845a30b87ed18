// Tests arg_reduce, combine, scan, gather and scatter.
tile.kernel @arg_reduce(%x: !tile.view<2xf32, unit = 1>, %a: !tile.view<1xindex, mut>, %b: !tile.view<1xindex, mut>)
    attributes {test.args = [["6x30", "6", "30"], ["5x20", "6", "30"]]} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.25 : f32
  %v = tile.load %x[%c0, %c0] fill %f : !tile.view<2xf32, unit = 1> -> tensor<6x30xf32>
  %i = tile.arg_reduce max %v axis 1 : tensor<6x30xf32> -> tensor<6x1xindex>
  %ir = tile.reshape %i : tensor<6x1xindex> -> tensor<6xindex>
  tile.store %ir, %a[%c0] : tensor<6xindex>, !tile.view<1xindex, mut>
  %j = tile.arg_reduce min %v axis 0 : tensor<6x30xf32> -> tensor<1x30xindex>
  %jr = tile.reshape %j : tensor<1x30xindex> -> tensor<30xindex>
  tile.store %jr, %b[%c0] : tensor<30xindex>, !tile.view<1xindex, mut>
  tile.return
}

tile.kernel @welford(%x: !tile.view<2xf32, unit = 1>, %y: !tile.view<2xf32, mut>)
    attributes {test.args = ["4x50", "4x2"], test.tolerance = 1.0e-5} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %z = arith.constant 0.0 : f32
  %v = tile.load %x[%c0, %c0] fill %z : !tile.view<2xf32, unit = 1> -> tensor<4x50xf32>
  %w = arith.mulf %v, %v : tensor<4x50xf32>
  %r:2 = tile.combine (%v, %w : tensor<4x50xf32>, tensor<4x50xf32>) axis 1 init (%z, %z : f32, f32)
      -> tensor<4x1xf32>, tensor<4x1xf32> {
  ^bb0(%la: f32, %lb: f32, %ra: f32, %rb: f32):
    %s = arith.addf %la, %ra : f32
    %p = arith.maximumf %lb, %rb : f32
    tile.yield %s, %p : f32, f32
  }
  tile.store %r#0, %y[%c0, %c0] : tensor<4x1xf32>, !tile.view<2xf32, mut>
  tile.store %r#1, %y[%c0, %c1] : tensor<4x1xf32>, !tile.view<2xf32, mut>
  tile.return
}

tile.kernel @cumsum(%x: !tile.view<2xi64, unit = 1>, %y: !tile.view<2xi64, mut, unit = 1>, %z: !tile.view<2xi64, mut, unit = 1>)
    attributes {test.args = ["5x33", "5x33", "5x33"]} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 1 : i64
  %v = tile.load %x[%c0, %c0] fill %f : !tile.view<2xi64, unit = 1> -> tensor<5x33xi64>
  %s = tile.scan (%v : tensor<5x33xi64>) axis 1 {
  ^bb0(%l: i64, %r: i64):
    %t = arith.addi %l, %r : i64
    tile.yield %t : i64
  }
  tile.store %s, %y[%c0, %c0] : tensor<5x33xi64>, !tile.view<2xi64, mut, unit = 1>
  %u = tile.scan (%s : tensor<5x33xi64>) axis 0 {
  ^bb0(%l: i64, %r: i64):
    %t = arith.maxsi %l, %r : i64
    tile.yield %t : i64
  }
  tile.store %u, %z[%c0, %c0] : tensor<5x33xi64>, !tile.view<2xi64, mut, unit = 1>
  tile.return
}

tile.kernel @gather_scatter(%x: !tile.view<2xf16>, %i: !tile.view<1xindex>, %y: !tile.view<2xf16, mut>)
    attributes {test.args = ["6x30", "20", "20x30"]} {
  %c0 = arith.constant 0 : index
  %m1 = arith.constant -1 : index
  %f = arith.constant 4.5 : f16
  %rows = tile.load %i[%c0] fill %m1 : !tile.view<1xindex> -> tensor<20xindex>
  %rr = tile.reshape %rows : tensor<20xindex> -> tensor<20x1xindex>
  %rb = tile.broadcast %rr : tensor<20x1xindex> -> tensor<20x30xindex>
  %col = tile.iota : tensor<30xindex>
  %cr = tile.reshape %col : tensor<30xindex> -> tensor<1x30xindex>
  %cb = tile.broadcast %cr : tensor<1x30xindex> -> tensor<20x30xindex>
  %g = tile.gather %x[%rb, %cb] fill %f : !tile.view<2xf16>, tensor<20x30xindex> -> tensor<20x30xf16>
  %h = arith.addf %g, %g : tensor<20x30xf16>
  %rowi = tile.iota : tensor<20xindex>
  %ri = tile.reshape %rowi : tensor<20xindex> -> tensor<20x1xindex>
  %rib = tile.broadcast %ri : tensor<20x1xindex> -> tensor<20x30xindex>
  %mask = arith.cmpi sge, %cb, %rib : tensor<20x30xindex>
  tile.scatter %h, %y[%rib, %cb] mask %mask : tensor<20x30xf16>, !tile.view<2xf16, mut>, tensor<20x30xindex>
  tile.return
}
