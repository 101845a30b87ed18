// Tests layer norm in the form of the library, and the sums of a row and of its squares in one pass.
tile.kernel @layer_norm(%x: !tile.view<2xf32, unit = 1>, %weight: !tile.view<1xf32, unit = 0>, %y: !tile.view<2xf32, mut, unit = 1>,
                        %mean: !tile.view<1xf32, mut>, %eps: f64)
    attributes {test.args = [["3x100", "100", "3x100", "3", "1e-5"], ["3x256", "256", "3x256", "3", "1e-5"],
                             ["3x37/80x1", "37", "3x37", "0", "1e-5"], ["3x37/80x1", "20", "3x30", "3", "1e-5"]],
                test.grid = [3], test.tolerance = 2.0e-6} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %row = tile.block_id x
  %n = tile.dim %x, 1 : !tile.view<2xf32, unit = 1>
  %ni = arith.index_cast %n : index to i64
  %nf = arith.sitofp %ni : i64 to f32
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<1x256xf32>
  %s = tile.reduce sum %v axis 1 : tensor<1x256xf32> -> tensor<1x1xf32>
  %nt = tile.splat %nf : f32 -> tensor<1x1xf32>
  %a = arith.divf %s, %nt : tensor<1x1xf32>
  %i = tile.iota : tensor<256xindex>
  %ir = tile.reshape %i : tensor<256xindex> -> tensor<1x256xindex>
  %ns = tile.splat %n : index -> tensor<1x256xindex>
  %in = arith.cmpi slt, %ir, %ns : tensor<1x256xindex>
  %ab = tile.broadcast %a : tensor<1x1xf32> -> tensor<1x256xf32>
  %d = arith.subf %v, %ab : tensor<1x256xf32>
  %z = tile.splat %zero : f32 -> tensor<1x256xf32>
  %c = arith.select %in, %d, %z : tensor<1x256xi1>, tensor<1x256xf32>
  %cc = arith.mulf %c, %c : tensor<1x256xf32>
  %q = tile.reduce sum %cc axis 1 : tensor<1x256xf32> -> tensor<1x1xf32>
  %var = arith.divf %q, %nt : tensor<1x1xf32>
  %e = arith.truncf %eps : f64 to f32
  %et = tile.splat %e : f32 -> tensor<1x1xf32>
  %ve = arith.addf %var, %et : tensor<1x1xf32>
  %scale = math.rsqrt %ve : tensor<1x1xf32>
  %sb = tile.broadcast %scale : tensor<1x1xf32> -> tensor<1x256xf32>
  %r = arith.mulf %c, %sb : tensor<1x256xf32>
  %w = tile.load %weight[%c0] fill %one : !tile.view<1xf32, unit = 0> -> tensor<256xf32>
  %wr = tile.reshape %w : tensor<256xf32> -> tensor<1x256xf32>
  %rw = arith.mulf %r, %wr : tensor<1x256xf32>
  tile.store %rw, %y[%row, %c0] : tensor<1x256xf32>, !tile.view<2xf32, mut, unit = 1>
  %m = tile.reshape %a : tensor<1x1xf32> -> tensor<1xf32>
  tile.store %m, %mean[%row] : tensor<1xf32>, !tile.view<1xf32, mut>
  tile.return
}

tile.kernel @two_sums(%x: !tile.view<2xf64, unit = 1>, %y: !tile.view<2xf64, mut>)
    attributes {test.args = [["8x100", "8x2"], ["5x64", "8x2"], ["8x3", "8x1"]], test.tolerance = 1.0e-13} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f64
  %v = tile.load %x[%c0, %c0] fill %one : !tile.view<2xf64, unit = 1> -> tensor<8x128xf64>
  %vv = arith.mulf %v, %v : tensor<8x128xf64>
  %s = tile.reduce sum %v axis 1 : tensor<8x128xf64> -> tensor<8x1xf64>
  %q = tile.reduce sum %vv axis 1 : tensor<8x128xf64> -> tensor<8x1xf64>
  tile.store %s, %y[%c0, %c0] : tensor<8x1xf64>, !tile.view<2xf64, mut>
  tile.store %q, %y[%c0, %c1] : tensor<8x1xf64>, !tile.view<2xf64, mut>
  tile.return
}
