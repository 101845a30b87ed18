// Tests softmax over columns: loops that carry tiles, and reductions across vectors.
tile.kernel @softmax_columns(%x: !tile.view<3xf32, unit = 2>, %y: !tile.view<3xf32, mut, unit = 2>)
    attributes {test.args = [["2x40x70", "2x40x70"], ["1x16x64", "1x16x64"], ["2x5x3", "2x5x3"], ["2x33x128/9000x256x1", "2x33x128"]],
                test.grid = [2, 2], test.tolerance = 1.0e-6} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %inf = arith.constant 0xFF800000 : f32
  %bx = tile.block_id x
  %by = tile.block_id y
  %j = arith.muli %bx, %c64 : index
  %source = tile.drop %x [0] at (%by) : !tile.view<3xf32, unit = 2> -> !tile.view<2xf32, unit = 1>
  %result = tile.drop %y [0] at (%by) : !tile.view<3xf32, mut, unit = 2> -> !tile.view<2xf32, mut, unit = 1>
  %n = tile.dim %x, 1 : !tile.view<3xf32, unit = 2>
  %steps = arith.ceildivsi %n, %c16 : index
  %top0 = tile.splat %inf : f32 -> tensor<1x64xf32>
  %top = scf.for %i = %c0 to %steps step %c1 iter_args(%t = %top0) -> tensor<1x64xf32> {
    %r = arith.muli %i, %c16 : index
    %v = tile.load %source[%r, %j] fill %inf : !tile.view<2xf32, unit = 1> -> tensor<16x64xf32>
    %m = tile.reduce max %v axis 0 : tensor<16x64xf32> -> tensor<1x64xf32>
    %u = arith.maximumf %t, %m : tensor<1x64xf32>
    scf.yield %u : tensor<1x64xf32>
  }
  %zero = arith.constant dense<0.0> : tensor<1x64xf32>
  %total = scf.for %i = %c0 to %steps step %c1 iter_args(%t = %zero) -> tensor<1x64xf32> {
    %r = arith.muli %i, %c16 : index
    %v = tile.load %source[%r, %j] fill %inf : !tile.view<2xf32, unit = 1> -> tensor<16x64xf32>
    %tb = tile.broadcast %top : tensor<1x64xf32> -> tensor<16x64xf32>
    %d = arith.subf %v, %tb : tensor<16x64xf32>
    %e = math.exp %d : tensor<16x64xf32>
    %m = tile.reduce sum %e axis 0 : tensor<16x64xf32> -> tensor<1x64xf32>
    %u = arith.addf %t, %m : tensor<1x64xf32>
    scf.yield %u : tensor<1x64xf32>
  }
  scf.for %i = %c0 to %steps step %c1 {
    %r = arith.muli %i, %c16 : index
    %v = tile.load %source[%r, %j] fill %inf : !tile.view<2xf32, unit = 1> -> tensor<16x64xf32>
    %tb = tile.broadcast %top : tensor<1x64xf32> -> tensor<16x64xf32>
    %d = arith.subf %v, %tb : tensor<16x64xf32>
    %e = math.exp %d : tensor<16x64xf32>
    %sb = tile.broadcast %total : tensor<1x64xf32> -> tensor<16x64xf32>
    %o = arith.divf %e, %sb : tensor<16x64xf32>
    tile.store %o, %result[%r, %j] : tensor<16x64xf32>, !tile.view<2xf32, mut, unit = 1>
  }
  tile.return
}

// Rows in chunks: loops carry tiles of one element.
tile.kernel @long_rows(%x: !tile.view<2xbf16, unit = 1>, %y: !tile.view<2xbf16, mut, unit = 1>)
    attributes {test.args = [["2x300", "2x300"], ["2x128", "2x128"], ["2x3", "2x3"]], test.grid = [2], test.tolerance = 8.0e-3} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %inf = arith.constant 0xFF80 : bf16
  %row = tile.block_id x
  %n = tile.dim %x, 1 : !tile.view<2xbf16, unit = 1>
  %steps = arith.ceildivsi %n, %c128 : index
  %top0 = arith.constant dense<0xFF800000> : tensor<1x1xf32>
  %top = scf.for %i = %c0 to %steps step %c1 iter_args(%t = %top0) -> tensor<1x1xf32> {
    %o = arith.muli %i, %c128 : index
    %l = tile.load %x[%row, %o] fill %inf : !tile.view<2xbf16, unit = 1> -> tensor<1x128xbf16>
    %v = arith.extf %l : tensor<1x128xbf16> to tensor<1x128xf32>
    %m = tile.reduce max %v axis 1 : tensor<1x128xf32> -> tensor<1x1xf32>
    %u = arith.maximumf %t, %m : tensor<1x1xf32>
    scf.yield %u : tensor<1x1xf32>
  }
  %tb = tile.broadcast %top : tensor<1x1xf32> -> tensor<1x128xf32>
  scf.for %i = %c0 to %steps step %c1 {
    %o = arith.muli %i, %c128 : index
    %l = tile.load %x[%row, %o] fill %inf : !tile.view<2xbf16, unit = 1> -> tensor<1x128xbf16>
    %v = arith.extf %l : tensor<1x128xbf16> to tensor<1x128xf32>
    %d = arith.subf %v, %tb : tensor<1x128xf32>
    %e = math.exp %d : tensor<1x128xf32>
    %r = arith.truncf %e : tensor<1x128xf32> to tensor<1x128xbf16>
    tile.store %r, %y[%row, %o] : tensor<1x128xbf16>, !tile.view<2xbf16, mut, unit = 1>
  }
  tile.return
}
