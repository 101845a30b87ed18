// Checks that threads, packing and residency follow from the row, its type and the chip.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-configure{chip=sm_90a}))' | FileCheck %s
// RUN: not kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-configure{chip=sm_90a candidate=99}))' 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: has {{[0-9]+}} candidates for its launch, no number 99

// A row of 256 bytes takes 16 lanes, and eight rows share a CTA.
// CHECK: tile.kernel @short_rows
// CHECK-SAME: #kgpu.launch<threads = 128{{[^>]*}}blocks = 8
tile.kernel @short_rows(%x: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xbf16> -> tensor<1x128xbf16>
  %m = tile.reduce max %v axis 1 : tensor<1x128xbf16> -> tensor<1x1xbf16>
  %b = tile.broadcast %m : tensor<1x1xbf16> -> tensor<1x128xbf16>
  %s = arith.subf %v, %b : tensor<1x128xbf16>
  tile.store %s, %y[%row, %c0] : tensor<1x128xbf16>, !tile.view<2xbf16, mut>
  tile.return
}

// If only a result per row is written, lanes take four vectors each, but at least eight lanes read a cache line.
// CHECK: tile.kernel @results_of_rows
// CHECK-SAME: #kgpu.launch<{{[^>]*}}blocks = 4
// CHECK: tile.kernel @results_of_short_rows
// CHECK-SAME: #kgpu.launch<{{[^>]*}}blocks = 16
tile.kernel @results_of_rows(%x: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xbf16> -> tensor<1x1024xbf16>
  %m = tile.reduce max %v axis 1 : tensor<1x1024xbf16> -> tensor<1x1xbf16>
  tile.store %m, %y[%row, %c0] : tensor<1x1xbf16>, !tile.view<2xbf16, mut>
  tile.return
}
tile.kernel @results_of_short_rows(%x: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xbf16> -> tensor<1x128xbf16>
  %m = tile.reduce max %v axis 1 : tensor<1x128xbf16> -> tensor<1x1xbf16>
  tile.store %m, %y[%row, %c0] : tensor<1x1xbf16>, !tile.view<2xbf16, mut>
  tile.return
}

// A row with more weights than elements: clusters are persistent, with all weights in registers.
// CHECK: tile.kernel @weights
// CHECK-SAME: #kgpu.launch<threads = 512{{[^>]*}}cluster = 2{{[^>]*}}persistent{{[^>]*}}early_loads{{[^>]*}}overlaps{{[^>]*}}stages = 1
tile.kernel @weights(%x: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8>, %a: !tile.view<1xbf16>, %b: !tile.view<1xbf16>, %y: !tile.view<2xbf16, mut>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xbf16, unit = 1, align = 16, divisible = 8> -> tensor<1x32768xbf16>
  %m = tile.reduce max %v axis 1 : tensor<1x32768xbf16> -> tensor<1x1xbf16>
  %top = tile.broadcast %m : tensor<1x1xbf16> -> tensor<1x32768xbf16>
  %d = arith.subf %v, %top : tensor<1x32768xbf16>
  %p = tile.load %a[%c0] fill %zero : !tile.view<1xbf16> -> tensor<32768xbf16>
  %q = tile.load %b[%c0] fill %zero : !tile.view<1xbf16> -> tensor<32768xbf16>
  %w = arith.addf %p, %q : tensor<32768xbf16>
  %r = tile.reshape %w : tensor<32768xbf16> -> tensor<1x32768xbf16>
  %s = arith.mulf %d, %r : tensor<1x32768xbf16>
  tile.store %s, %y[%row, %c0] : tensor<1x32768xbf16>, !tile.view<2xbf16, mut>
  tile.return
}

// A CTA that reads 8 KB starts while the preceding kernel ends. Eight short rows of 256 bytes are too few for that.
// CHECK: tile.kernel @rows
// CHECK-SAME: #kgpu.launch<threads = 128{{[^>]*}}min_ctas = 12{{[^>]*}}overlaps
tile.kernel @rows(%x: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xbf16> -> tensor<1x4096xbf16>
  %m = tile.reduce max %v axis 1 : tensor<1x4096xbf16> -> tensor<1x1xbf16>
  %b = tile.broadcast %m : tensor<1x1xbf16> -> tensor<1x4096xbf16>
  %s = arith.subf %v, %b : tensor<1x4096xbf16>
  tile.store %s, %y[%row, %c0] : tensor<1x4096xbf16>, !tile.view<2xbf16, mut>
  tile.return
}

// Asserts need the whole CTA, so nothing is packed.
// CHECK: tile.kernel @asserts
// CHECK-SAME: #kgpu.launch<threads = 32
// CHECK-NOT: blocks
tile.kernel @asserts(%x: !tile.view<2xbf16>, %cond: i1) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  tile.assert %cond, "no" : i1
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xbf16> -> tensor<1x128xbf16>
  tile.return
}

// Without a reduction: many threads with one or two vectors each.
// CHECK: tile.kernel @elementwise
// CHECK-SAME: #kgpu.launch<threads = 256
tile.kernel @elementwise(%x: !tile.view<1xbf16>, %y: !tile.view<1xbf16, mut>) {
  %zero = arith.constant 0.0 : bf16
  %i = tile.block_id x
  %v = tile.load %x[%i] fill %zero : !tile.view<1xbf16> -> tensor<4096xbf16>
  %s = arith.addf %v, %v : tensor<4096xbf16>
  tile.store %s, %y[%i] : tensor<4096xbf16>, !tile.view<1xbf16, mut>
  tile.return
}

// With any strides, no loads are hoisted, and ptxas gets no minimum number of CTAs.
// CHECK: tile.kernel @any_strides
// CHECK-SAME: #kgpu.launch<threads = 128, overlaps>
tile.kernel @any_strides(%x: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>, %n: index) attributes {variant = "any"} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %row = tile.block_id x
  scf.for %i = %c0 to %n step %c1 {
    %v = tile.load %x[%row, %i] fill %zero : !tile.view<2xbf16> -> tensor<1x4096xbf16>
    %m = tile.reduce max %v axis 1 : tensor<1x4096xbf16> -> tensor<1x1xbf16>
    tile.store %m, %y[%row, %i] : tensor<1x1xbf16>, !tile.view<2xbf16, mut>
  }
  tile.return
}

// With stages, CTAs of a kernel without loops are persistent and loop over kernel blocks.
// CHECK: tile.kernel @asked
// CHECK-SAME: #kgpu.launch<threads = 256{{[^>]*}}persistent{{[^>]*}}stages = 2
tile.kernel @asked(%x: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>) attributes {schedule = #tile.schedule<warps = 8, stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !tile.view<2xbf16> -> tensor<1x8192xbf16>
  %m = tile.reduce max %v axis 1 : tensor<1x8192xbf16> -> tensor<1x1xbf16>
  tile.store %m, %y[%row, %c0] : tensor<1x1xbf16>, !tile.view<2xbf16, mut>
  tile.return
}
