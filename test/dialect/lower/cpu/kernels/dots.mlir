// Tests matrix products: plain, transposed, batched, from computed operands, accumulated in loops; attention.
tile.kernel @gemm(%a: !tile.view<2xf32, unit = 1>, %b: !tile.view<2xf32>, %d: !tile.view<2xf32, mut, unit = 1>)
    attributes {test.args = [["70x50", "50x60", "70x60"], ["32x16", "16x48", "32x48"], ["5x100/100x1", "100x3/1x100", "5x3"]],
                test.tolerance = 1.0e-5, test.grid = [6]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c48 = arith.constant 48 : index
  %f = arith.constant 0.0 : f32
  %rows = tile.dim %d, 0 : !tile.view<2xf32, mut, unit = 1>
  %columns = tile.dim %d, 1 : !tile.view<2xf32, mut, unit = 1>
  %k = tile.dim %a, 1 : !tile.view<2xf32, unit = 1>
  %cm = arith.ceildivsi %rows, %c32 : index
  %cn = arith.ceildivsi %columns, %c48 : index
  %ck = arith.ceildivsi %k, %c16 : index
  tile.for_tiles (%m, %n) to (%cm, %cn) {
    %r = arith.muli %m, %c32 : index
    %c = arith.muli %n, %c48 : index
    %zero = arith.constant dense<0.0> : tensor<32x48xf32>
    %acc = scf.for %i = %c0 to %ck step %c1 iter_args(%t = %zero) -> tensor<32x48xf32> {
      %o = arith.muli %i, %c16 : index
      %u = tile.load %a[%r, %o] fill %f : !tile.view<2xf32, unit = 1> -> tensor<32x16xf32>
      %v = tile.load %b[%o, %c] fill %f : !tile.view<2xf32> -> tensor<16x48xf32>
      %w = tile.dot %u, %v, %t : tensor<32x16xf32>, tensor<16x48xf32>, tensor<32x48xf32>
      scf.yield %w : tensor<32x48xf32>
    }
    %two = arith.constant dense<2.0> : tensor<32x48xf32>
    %e = arith.mulf %acc, %two : tensor<32x48xf32>
    tile.store %e, %d[%r, %c] : tensor<32x48xf32>, !tile.view<2xf32, mut, unit = 1>
  }
  tile.return
}

tile.kernel @batched(%a: !tile.view<3xbf16, unit = 2>, %b: !tile.view<3xbf16, unit = 2>, %d: !tile.view<3xf32, mut, unit = 2>)
    attributes {test.args = [["3x8x16", "3x24x16", "3x8x24"], ["2x7x13", "3x20x13", "3x8x24"]], test.tolerance = 1.0e-5} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : bf16
  %u = tile.load %a[%c0, %c0, %c0] fill %f : !tile.view<3xbf16, unit = 2> -> tensor<3x8x16xbf16>
  %v = tile.load %b[%c0, %c0, %c0] fill %f : !tile.view<3xbf16, unit = 2> -> tensor<3x24x16xbf16>
  %t = tile.permute %v [0, 2, 1] : tensor<3x24x16xbf16> -> tensor<3x16x24xbf16>
  %z = arith.constant dense<1.0> : tensor<3x8x24xf32>
  %w = tile.dot %u, %t, %z : tensor<3x8x16xbf16>, tensor<3x16x24xbf16>, tensor<3x8x24xf32>
  tile.store %w, %d[%c0, %c0, %c0] : tensor<3x8x24xf32>, !tile.view<3xf32, mut, unit = 2>
  tile.return
}

tile.kernel @attention(%q: !tile.view<2xf32, unit = 1>, %k: !tile.view<2xf32, unit = 1>, %v: !tile.view<2xf32, unit = 1>,
                       %o: !tile.view<2xf32, mut, unit = 1>)
    attributes {test.args = [["40x16", "50x16", "50x16", "40x16"], ["32x16", "32x16", "32x16", "32x16"], ["5x9", "33x9", "33x11", "5x11"], ["33x16", "41x16", "41x3", "33x3"]],
                test.grid = [2], test.tolerance = 2.0e-5} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %zero = arith.constant 0.0 : f32
  %inf = arith.constant 0xFF800000 : f32
  %m = tile.block_id x
  %r = arith.muli %m, %c32 : index
  %keys = tile.dim %k, 0 : !tile.view<2xf32, unit = 1>
  %blocks = arith.ceildivsi %keys, %c32 : index
  %queries = tile.load %q[%r, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<32x16xf32>
  %top0 = tile.splat %inf : f32 -> tensor<32x1xf32>
  %total0 = tile.splat %zero : f32 -> tensor<32x1xf32>
  %acc0 = tile.splat %zero : f32 -> tensor<32x16xf32>
  %iota = tile.iota : tensor<32xindex>
  %ir = tile.reshape %iota : tensor<32xindex> -> tensor<1x32xindex>
  %res:3 = scf.for %n = %c0 to %blocks step %c1 iter_args(%top = %top0, %total = %total0, %acc = %acc0) -> (tensor<32x1xf32>, tensor<32x1xf32>, tensor<32x16xf32>) {
    %c = arith.muli %n, %c32 : index
    %kt = tile.load %k[%c, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<32x16xf32>
    %kp = tile.permute %kt [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
    %z = arith.constant dense<0.0> : tensor<32x32xf32>
    %s0 = tile.dot %queries, %kp, %z : tensor<32x16xf32>, tensor<16x32xf32>, tensor<32x32xf32>
    %cs = tile.splat %c : index -> tensor<1x32xindex>
    %column = arith.addi %cs, %ir : tensor<1x32xindex>
    %ks = tile.splat %keys : index -> tensor<1x32xindex>
    %seen = arith.cmpi slt, %column, %ks : tensor<1x32xindex>
    %sb = tile.broadcast %seen : tensor<1x32xi1> -> tensor<32x32xi1>
    %is = tile.splat %inf : f32 -> tensor<32x32xf32>
    %s = arith.select %sb, %s0, %is : tensor<32x32xi1>, tensor<32x32xf32>
    %mx = tile.reduce max %s axis 1 : tensor<32x32xf32> -> tensor<32x1xf32>
    %new = arith.maximumf %top, %mx : tensor<32x1xf32>
    %nb = tile.broadcast %new : tensor<32x1xf32> -> tensor<32x32xf32>
    %d = arith.subf %s, %nb : tensor<32x32xf32>
    %p = math.exp2 %d : tensor<32x32xf32>
    %kd = arith.subf %top, %new : tensor<32x1xf32>
    %keep = math.exp2 %kd : tensor<32x1xf32>
    %ps = tile.reduce sum %p axis 1 : tensor<32x32xf32> -> tensor<32x1xf32>
    %tk = arith.mulf %total, %keep : tensor<32x1xf32>
    %nt = arith.addf %tk, %ps : tensor<32x1xf32>
    %kb = tile.broadcast %keep : tensor<32x1xf32> -> tensor<32x16xf32>
    %ak = arith.mulf %acc, %kb : tensor<32x16xf32>
    %vt = tile.load %v[%c, %c0] fill %zero : !tile.view<2xf32, unit = 1> -> tensor<32x16xf32>
    %na = tile.dot %p, %vt, %ak : tensor<32x32xf32>, tensor<32x16xf32>, tensor<32x16xf32>
    scf.yield %new, %nt, %na : tensor<32x1xf32>, tensor<32x1xf32>, tensor<32x16xf32>
  }
  %tb = tile.broadcast %res#1 : tensor<32x1xf32> -> tensor<32x16xf32>
  %out = arith.divf %res#2, %tb : tensor<32x16xf32>
  tile.store %out, %o[%r, %c0] : tensor<32x16xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

tile.kernel @narrow_dots(%a: !tile.view<2xf8E4M3FN, unit = 1>, %b: !tile.view<2xf8E4M3FN, unit = 1>, %d: !tile.view<2xf32, mut, unit = 1>,
                         %i: !tile.view<2xi8, unit = 1>, %j: !tile.view<2xi8, unit = 1>, %e: !tile.view<2xi32, mut, unit = 1>)
    attributes {test.args = ["8x20", "20x16", "8x16", "7x20", "20x16", "8x16"], test.tolerance = 1.0e-6} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f8E4M3FN
  %u = tile.load %a[%c0, %c0] fill %f : !tile.view<2xf8E4M3FN, unit = 1> -> tensor<8x20xf8E4M3FN>
  %v = tile.load %b[%c0, %c0] fill %f : !tile.view<2xf8E4M3FN, unit = 1> -> tensor<20x16xf8E4M3FN>
  %z = arith.constant dense<1.0> : tensor<8x16xf32>
  %w = tile.dot %u, %v, %z : tensor<8x20xf8E4M3FN>, tensor<20x16xf8E4M3FN>, tensor<8x16xf32>
  tile.store %w, %d[%c0, %c0] : tensor<8x16xf32>, !tile.view<2xf32, mut, unit = 1>
  %g = arith.constant 0 : i8
  %s = tile.load %i[%c0, %c0] fill %g : !tile.view<2xi8, unit = 1> -> tensor<8x20xi8>
  %t = tile.load %j[%c0, %c0] fill %g : !tile.view<2xi8, unit = 1> -> tensor<20x16xi8>
  %y = arith.constant dense<-3> : tensor<8x16xi32>
  %x = tile.dot %s, %t, %y : tensor<8x20xi8>, tensor<20x16xi8>, tensor<8x16xi32>
  tile.store %x, %e[%c0, %c0] : tensor<8x16xi32>, !tile.view<2xi32, mut, unit = 1>
  tile.return
}

// Gathers rows, some outside and some contiguous with each other. Pieces begin before the first column and end behind
// the last one.
tile.kernel @gathered_rows(%x: !tile.view<3xf32>, %w: !tile.view<2xf32>, %d: !tile.view<2xf32, mut, unit = 1>, %e: !tile.view<2xf32, mut, unit = 1>,
                           %step: index, %first: index, %start: index)
    attributes {test.args = [["2x9x16", "16x8", "32x8", "8x32", "1", "-3", "0"], ["2x9x16", "16x8", "32x8", "8x32", "2", "0", "-5"],
                             ["2x9x16/200x1x12", "16x8", "32x8", "8x32", "1", "-6", "3"], ["2x30x16/700x1x40", "16x8/1x16", "32x8", "8x32", "1", "2", "-2"]],
                test.tolerance = 1.0e-5} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %one = arith.constant 1 : index
  %i = tile.iota : tensor<32xindex>
  %rows = tile.reshape %i : tensor<32xindex> -> tensor<32x1xindex>
  %steps = tile.splat %step : index -> tensor<32x1xindex>
  %firsts = tile.splat %first : index -> tensor<32x1xindex>
  %scaled = arith.muli %rows, %steps : tensor<32x1xindex>
  %row = arith.addi %scaled, %firsts : tensor<32x1xindex>
  %j = tile.iota : tensor<16xindex>
  %columns = tile.reshape %j : tensor<16xindex> -> tensor<1x16xindex>
  %starts = tile.splat %start : index -> tensor<1x16xindex>
  %column = arith.addi %starts, %columns : tensor<1x16xindex>
  %p = tile.splat %one : index -> tensor<32x16xindex>
  %q = tile.broadcast %row : tensor<32x1xindex> -> tensor<32x16xindex>
  %r = tile.broadcast %column : tensor<1x16xindex> -> tensor<32x16xindex>
  %g = tile.gather %x[%p, %q, %r] fill %f : !tile.view<3xf32>, tensor<32x16xindex> -> tensor<32x16xf32>
  %v = tile.load %w[%c0, %c0] fill %f : !tile.view<2xf32> -> tensor<16x8xf32>
  %zero = arith.constant dense<0.5> : tensor<32x8xf32>
  %a = tile.dot %g, %v, %zero : tensor<32x16xf32>, tensor<16x8xf32>, tensor<32x8xf32>
  tile.store %a, %d[%c0, %c0] : tensor<32x8xf32>, !tile.view<2xf32, mut, unit = 1>
  %h = tile.gather %x[%p, %q, %r] fill %f : !tile.view<3xf32>, tensor<32x16xindex> -> tensor<32x16xf32>
  %gt = tile.permute %h [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
  %vt = tile.permute %v [1, 0] : tensor<16x8xf32> -> tensor<8x16xf32>
  %zerot = arith.constant dense<1.5> : tensor<8x32xf32>
  %b = tile.dot %vt, %gt, %zerot : tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>
  tile.store %b, %e[%c0, %c0] : tensor<8x32xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// Gathers the same rows as the depth of the products, on both sides, as weight gradients do.
tile.kernel @gathered_depth(%x: !tile.view<3xf32>, %w: !tile.view<2xf32>, %d: !tile.view<2xf32, mut, unit = 1>, %e: !tile.view<2xf32, mut, unit = 1>,
                            %step: index, %first: index, %start: index)
    attributes {test.args = [["2x9x16", "32x8", "8x16", "16x8", "1", "-3", "0"], ["2x9x16", "32x8", "8x16", "16x8", "2", "0", "-5"],
                             ["2x9x16/200x1x12", "32x8", "8x16", "16x8", "1", "-6", "3"], ["2x30x16/700x1x40", "32x8/1x32", "8x16", "16x8", "1", "2", "-2"]],
                test.tolerance = 1.0e-5} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f32
  %one = arith.constant 1 : index
  %i = tile.iota : tensor<32xindex>
  %rows = tile.reshape %i : tensor<32xindex> -> tensor<32x1xindex>
  %steps = tile.splat %step : index -> tensor<32x1xindex>
  %firsts = tile.splat %first : index -> tensor<32x1xindex>
  %scaled = arith.muli %rows, %steps : tensor<32x1xindex>
  %row = arith.addi %scaled, %firsts : tensor<32x1xindex>
  %j = tile.iota : tensor<16xindex>
  %columns = tile.reshape %j : tensor<16xindex> -> tensor<1x16xindex>
  %starts = tile.splat %start : index -> tensor<1x16xindex>
  %column = arith.addi %starts, %columns : tensor<1x16xindex>
  %p = tile.splat %one : index -> tensor<32x16xindex>
  %q = tile.broadcast %row : tensor<32x1xindex> -> tensor<32x16xindex>
  %r = tile.broadcast %column : tensor<1x16xindex> -> tensor<32x16xindex>
  %g = tile.gather %x[%p, %q, %r] fill %f : !tile.view<3xf32>, tensor<32x16xindex> -> tensor<32x16xf32>
  %v = tile.load %w[%c0, %c0] fill %f : !tile.view<2xf32> -> tensor<32x8xf32>
  %vt = tile.permute %v [1, 0] : tensor<32x8xf32> -> tensor<8x32xf32>
  %zero = arith.constant dense<0.5> : tensor<8x16xf32>
  %a = tile.dot %vt, %g, %zero : tensor<8x32xf32>, tensor<32x16xf32>, tensor<8x16xf32>
  tile.store %a, %d[%c0, %c0] : tensor<8x16xf32>, !tile.view<2xf32, mut, unit = 1>
  %h = tile.gather %x[%p, %q, %r] fill %f : !tile.view<3xf32>, tensor<32x16xindex> -> tensor<32x16xf32>
  %gt = tile.permute %h [1, 0] : tensor<32x16xf32> -> tensor<16x32xf32>
  %zerot = arith.constant dense<1.5> : tensor<16x8xf32>
  %b = tile.dot %gt, %v, %zerot : tensor<16x32xf32>, tensor<32x8xf32>, tensor<16x8xf32>
  tile.store %b, %e[%c0, %c0] : tensor<16x8xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}

// Gathers pixels of images with 7 columns, so that image rows end within a vector. The channels are an odd number of
// contiguous elements, or planes. The last tile lies mostly behind the end.
tile.kernel @gathered_pixels(%x: !tile.view<3xbf16>, %w: !tile.view<2xbf16>, %d: !tile.view<2xf32, mut, unit = 1>, %e: !tile.view<2xf32, mut, unit = 1>,
                             %skip: index, %channel: index)
    attributes {test.args = [["7x7x13", "40x20", "64x20", "20x64", "-1", "0"], ["7x7x13/1x7x49", "40x20", "64x20", "20x64", "-1", "0"],
                             ["7x7x40/1x7x49", "40x20/1x40", "64x20", "20x64", "1", "0"], ["7x7x33", "40x20/1x40", "64x20", "20x64", "0", "-3"],
                             ["7x7x34/1x7x49", "40x20", "64x20", "20x64", "2", "5"]],
                test.tolerance = 1.0e-5} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : bf16
  %i = tile.iota : tensor<64xindex>
  %pixel = tile.reshape %i : tensor<64xindex> -> tensor<64x1xindex>
  %width = arith.constant dense<7> : tensor<64x1xindex>
  %row = arith.divsi %pixel, %width : tensor<64x1xindex>
  %before = arith.muli %row, %width : tensor<64x1xindex>
  %column = arith.subi %pixel, %before : tensor<64x1xindex>
  %skips = tile.splat %skip : index -> tensor<64x1xindex>
  %seen = arith.addi %column, %skips : tensor<64x1xindex>
  %j = tile.iota : tensor<40xindex>
  %depth = tile.reshape %j : tensor<40xindex> -> tensor<1x40xindex>
  %starts = tile.splat %channel : index -> tensor<1x40xindex>
  %channels = arith.addi %starts, %depth : tensor<1x40xindex>
  %p = tile.broadcast %row : tensor<64x1xindex> -> tensor<64x40xindex>
  %q = tile.broadcast %seen : tensor<64x1xindex> -> tensor<64x40xindex>
  %r = tile.broadcast %channels : tensor<1x40xindex> -> tensor<64x40xindex>
  %g = tile.gather %x[%p, %q, %r] fill %f : !tile.view<3xbf16>, tensor<64x40xindex> -> tensor<64x40xbf16>
  %v = tile.load %w[%c0, %c0] fill %f : !tile.view<2xbf16> -> tensor<40x20xbf16>
  %zero = arith.constant dense<0.5> : tensor<64x20xf32>
  %a = tile.dot %g, %v, %zero : tensor<64x40xbf16>, tensor<40x20xbf16>, tensor<64x20xf32>
  tile.store %a, %d[%c0, %c0] : tensor<64x20xf32>, !tile.view<2xf32, mut, unit = 1>
  %h = tile.gather %x[%p, %q, %r] fill %f : !tile.view<3xbf16>, tensor<64x40xindex> -> tensor<64x40xbf16>
  %gt = tile.permute %h [1, 0] : tensor<64x40xbf16> -> tensor<40x64xbf16>
  %vt = tile.permute %v [1, 0] : tensor<40x20xbf16> -> tensor<20x40xbf16>
  %zerot = arith.constant dense<1.5> : tensor<20x64xf32>
  %b = tile.dot %vt, %gt, %zerot : tensor<20x40xbf16>, tensor<40x64xbf16>, tensor<20x64xf32>
  tile.store %b, %e[%c0, %c0] : tensor<20x64xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}
