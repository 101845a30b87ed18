// Tests every element type: conversions, arithmetic of narrow floats, integers, booleans.
tile.kernel @narrow(%x: !tile.view<1xbf16, unit = 0>, %h: !tile.view<1xf16, unit = 0>, %a: !tile.view<1xbf16, mut, unit = 0>,
                    %b: !tile.view<1xf16, mut, unit = 0>, %c: !tile.view<1xf8E4M3FN, mut, unit = 0>, %d: !tile.view<1xf8E5M2, mut, unit = 0>)
    attributes {test.args = [["100", "100", "100", "100", "100", "100"], ["37", "37", "37", "37", "37", "37"]], test.spread = 20.0 : f64} {
  %c0 = arith.constant 0 : index
  %fx = arith.constant 0.0 : bf16
  %fh = arith.constant 0.0 : f16
  %v = tile.load %x[%c0] fill %fx : !tile.view<1xbf16, unit = 0> -> tensor<128xbf16>
  %w = tile.load %h[%c0] fill %fh : !tile.view<1xf16, unit = 0> -> tensor<128xf16>
  %vv = arith.mulf %v, %v : tensor<128xbf16>
  tile.store %vv, %a[%c0] : tensor<128xbf16>, !tile.view<1xbf16, mut, unit = 0>
  %ww = arith.divf %w, %w : tensor<128xf16>
  %wx = arith.addf %ww, %w : tensor<128xf16>
  tile.store %wx, %b[%c0] : tensor<128xf16>, !tile.view<1xf16, mut, unit = 0>
  %e = arith.extf %v : tensor<128xbf16> to tensor<128xf64>
  %t = arith.truncf %e : tensor<128xf64> to tensor<128xf8E4M3FN>
  tile.store %t, %c[%c0] : tensor<128xf8E4M3FN>, !tile.view<1xf8E4M3FN, mut, unit = 0>
  %f = arith.extf %w : tensor<128xf16> to tensor<128xf32>
  %g = arith.truncf %f : tensor<128xf32> to tensor<128xf8E5M2>
  tile.store %g, %d[%c0] : tensor<128xf8E5M2>, !tile.view<1xf8E5M2, mut, unit = 0>
  tile.return
}

tile.kernel @from_f8(%x: !tile.view<1xf8E4M3FN>, %h: !tile.view<1xf8E5M2>, %a: !tile.view<1xf32, mut>, %b: !tile.view<1xf64, mut>)
    attributes {test.args = ["300", "300", "300", "300"], test.spread = 3.0 : f64} {
  %c0 = arith.constant 0 : index
  %fx = arith.constant 0.0 : f8E4M3FN
  %fh = arith.constant 0.0 : f8E5M2
  %v = tile.load %x[%c0] fill %fx : !tile.view<1xf8E4M3FN> -> tensor<300xf8E4M3FN>
  %w = tile.load %h[%c0] fill %fh : !tile.view<1xf8E5M2> -> tensor<300xf8E5M2>
  %u = arith.mulf %v, %v : tensor<300xf8E4M3FN>
  %e = arith.extf %u : tensor<300xf8E4M3FN> to tensor<300xf32>
  tile.store %e, %a[%c0] : tensor<300xf32>, !tile.view<1xf32, mut>
  %g = arith.extf %w : tensor<300xf8E5M2> to tensor<300xf64>
  tile.store %g, %b[%c0] : tensor<300xf64>, !tile.view<1xf64, mut>
  tile.return
}

tile.kernel @f64_to_narrow(%x: !tile.view<1xf64, unit = 0>, %a: !tile.view<1xbf16, mut, unit = 0>, %b: !tile.view<1xf16, mut, unit = 0>, %s: f64, %o: !tile.view<0xbf16, mut>)
    attributes {test.args = ["1000", "1000", "1000", "1.00390625000001", "scalar"], test.spread = 1.0e-6 : f64} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0.0 : f64
  %v = tile.load %x[%c0] fill %f : !tile.view<1xf64, unit = 0> -> tensor<1000xf64>
  %t = arith.truncf %v : tensor<1000xf64> to tensor<1000xbf16>
  tile.store %t, %a[%c0] : tensor<1000xbf16>, !tile.view<1xbf16, mut, unit = 0>
  %u = arith.truncf %v : tensor<1000xf64> to tensor<1000xf16>
  tile.store %u, %b[%c0] : tensor<1000xf16>, !tile.view<1xf16, mut, unit = 0>
  %z = arith.truncf %s : f64 to bf16
  tile.store %z, %o[] : bf16, !tile.view<0xbf16, mut>
  tile.return
}

tile.kernel @integers(%x: !tile.view<1xi8, unit = 0>, %a: !tile.view<1xi8, mut, unit = 0>, %b: !tile.view<1xi64, mut, unit = 0>,
                      %c: !tile.view<1xf32, mut, unit = 0>, %d: !tile.view<1xi1, mut, unit = 0>, %e: !tile.view<1xi32, mut, unit = 0>)
    attributes {test.args = ["77", "77", "77", "77", "77", "77"]} {
  %c0 = arith.constant 0 : index
  %f = arith.constant 0 : i8
  %v = tile.load %x[%c0] fill %f : !tile.view<1xi8, unit = 0> -> tensor<128xi8>
  %three = arith.constant dense<3> : tensor<128xi8>
  %q = arith.floordivsi %v, %three : tensor<128xi8>
  %m = arith.remsi %v, %three : tensor<128xi8>
  %s = arith.addi %q, %m : tensor<128xi8>
  tile.store %s, %a[%c0] : tensor<128xi8>, !tile.view<1xi8, mut, unit = 0>
  %w = arith.extsi %v : tensor<128xi8> to tensor<128xi64>
  %d2 = arith.constant dense<-7> : tensor<128xi64>
  %wq = arith.divsi %w, %d2 : tensor<128xi64>
  %ww = arith.muli %w, %wq : tensor<128xi64>
  tile.store %ww, %b[%c0] : tensor<128xi64>, !tile.view<1xi64, mut, unit = 0>
  %g = arith.sitofp %w : tensor<128xi64> to tensor<128xf32>
  %h = arith.uitofp %v : tensor<128xi8> to tensor<128xf32>
  %gh = arith.addf %g, %h : tensor<128xf32>
  tile.store %gh, %c[%c0] : tensor<128xf32>, !tile.view<1xf32, mut, unit = 0>
  %odd = arith.trunci %v : tensor<128xi8> to tensor<128xi1>
  %neg = arith.cmpi slt, %q, %m : tensor<128xi8>
  %both = arith.xori %odd, %neg : tensor<128xi1>
  tile.store %both, %d[%c0] : tensor<128xi1>, !tile.view<1xi1, mut, unit = 0>
  %i = arith.fptosi %gh : tensor<128xf32> to tensor<128xi32>
  %sh = arith.constant dense<2> : tensor<128xi32>
  %l = arith.shli %i, %sh : tensor<128xi32>
  %r = arith.shrsi %l, %sh : tensor<128xi32>
  %mx = arith.maxsi %r, %sh : tensor<128xi32>
  tile.store %mx, %e[%c0] : tensor<128xi32>, !tile.view<1xi32, mut, unit = 0>
  tile.return
}

tile.kernel @bools(%x: !tile.view<2xi1, unit = 1>, %a: !tile.view<1xi1, mut>, %b: !tile.view<1xi1, mut>, %c: !tile.view<1xi32, mut>)
    attributes {test.args = [["8x3", "8", "8", "8"], ["7x20", "8", "8", "8"]]} {
  %c0 = arith.constant 0 : index
  %t = arith.constant true
  %v = tile.load %x[%c0, %c0] fill %t : !tile.view<2xi1, unit = 1> -> tensor<8x20xi1>
  %all = tile.reduce and %v axis 1 : tensor<8x20xi1> -> tensor<8x1xi1>
  %any = tile.reduce or %v axis 1 : tensor<8x20xi1> -> tensor<8x1xi1>
  %ar = tile.reshape %all : tensor<8x1xi1> -> tensor<8xi1>
  %br = tile.reshape %any : tensor<8x1xi1> -> tensor<8xi1>
  tile.store %ar, %a[%c0] : tensor<8xi1>, !tile.view<1xi1, mut>
  tile.store %br, %b[%c0] : tensor<8xi1>, !tile.view<1xi1, mut>
  %w = arith.extui %v : tensor<8x20xi1> to tensor<8x20xi32>
  %n = tile.reduce sum %w axis 1 : tensor<8x20xi32> -> tensor<8x1xi32>
  %nr = tile.reshape %n : tensor<8x1xi32> -> tensor<8xi32>
  tile.store %nr, %c[%c0] : tensor<8xi32>, !tile.view<1xi32, mut>
  tile.return
}

tile.kernel @functions(%x: !tile.view<1xf32, unit = 0>, %y: !tile.view<2xf32, mut, unit = 1>)
    attributes {test.args = ["100", "8x100"], test.tolerance = 1.0e-6} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %f = arith.constant 0.0 : f32
  %v = tile.load %x[%c0] fill %f : !tile.view<1xf32, unit = 0> -> tensor<100xf32>
  %a = math.absf %v : tensor<100xf32>
  %s = math.sqrt %a : tensor<100xf32>
  %l = math.log %a : tensor<100xf32>
  %sin = math.sin %v : tensor<100xf32>
  %cos = math.cos %v : tensor<100xf32>
  %tanh = math.tanh %v : tensor<100xf32>
  %erf = math.erf %v : tensor<100xf32>
  %fl = math.floor %v : tensor<100xf32>
  %fma = math.fma %v, %a, %fl : tensor<100xf32>
  %o0 = tile.reshape %s : tensor<100xf32> -> tensor<1x100xf32>
  tile.store %o0, %y[%c0, %c0] : tensor<1x100xf32>, !tile.view<2xf32, mut, unit = 1>
  %o1 = tile.reshape %l : tensor<100xf32> -> tensor<1x100xf32>
  tile.store %o1, %y[%c1, %c0] : tensor<1x100xf32>, !tile.view<2xf32, mut, unit = 1>
  %sc = arith.mulf %sin, %cos : tensor<100xf32>
  %o2 = tile.reshape %sc : tensor<100xf32> -> tensor<1x100xf32>
  tile.store %o2, %y[%c2, %c0] : tensor<1x100xf32>, !tile.view<2xf32, mut, unit = 1>
  %o3 = tile.reshape %tanh : tensor<100xf32> -> tensor<1x100xf32>
  tile.store %o3, %y[%c3, %c0] : tensor<1x100xf32>, !tile.view<2xf32, mut, unit = 1>
  %o4 = tile.reshape %erf : tensor<100xf32> -> tensor<1x100xf32>
  tile.store %o4, %y[%c4, %c0] : tensor<1x100xf32>, !tile.view<2xf32, mut, unit = 1>
  %o5 = tile.reshape %fma : tensor<100xf32> -> tensor<1x100xf32>
  tile.store %o5, %y[%c5, %c0] : tensor<1x100xf32>, !tile.view<2xf32, mut, unit = 1>
  tile.return
}
