// Tests the checks of indices and of written floats: their conditions, messages, and which elements they leave out.
// RUN: kpkg-opt --tile-add-checks=bounds --split-input-file %s | FileCheck --check-prefix=BOUNDS %s
// RUN: kpkg-opt --tile-add-checks=nan --split-input-file %s | FileCheck --check-prefix=NAN %s
// RUN: kpkg-opt --tile-add-checks --split-input-file %s | FileCheck --check-prefix=NONE %s

// NONE-NOT: tile.print

// An index is compared without a sign, so that negative ones are outside. Elements with a false mask are not checked.
// BOUNDS-LABEL: tile.kernel @gathered
// BOUNDS-SAME: (%[[X:.*]]: !tile.view<1xf32>, %[[I:.*]]: !tile.view<1xindex>
// BOUNDS: %[[AT:.*]] = tile.load %[[I]]
// BOUNDS-COUNT-2: %[[EXTENT:.*]] = tile.dim %[[X]], 0
// BOUNDS: %[[ALL:.*]] = tile.splat %[[EXTENT]] : index -> tensor<8xindex>
// BOUNDS: %[[INSIDE:.*]] = arith.cmpi ult, %[[AT]], %[[ALL]] : tensor<8xindex>
// BOUNDS: %[[TRUE:.*]] = arith.constant dense<true> : tensor<8xi1>
// BOUNDS: %[[HOLDS:.*]] = arith.select %{{.*}}, %[[INSIDE]], %[[TRUE]]
// BOUNDS: %[[BX:.*]] = tile.block_id x
// BOUNDS: tile.print "{}add-checks.k:7: in `gathered`: index [{}] leaves the extents [{}] of argument 0, in block [{}, {}, {}]"(%[[HOLDS]], %[[AT]], %{{.*}}, %[[BX]], %{{.*}}, %{{.*}}) : tensor<8xi1>, tensor<8xindex>, index, index, index, index {tile.check = "add-checks.k:7: in `gathered`: an index leaves argument 0"}
// BOUNDS: tile.gather %[[X]][%[[AT]]]
// BOUNDS-NOT: tile.print
// NAN-LABEL: tile.kernel @gathered
// NAN: tile.gather
// NAN: %[[WIDE:.*]] = arith.cmpf ord, %[[V:.*]], %[[V]] : tensor<8xf32>
// NAN: %[[WRITTEN:.*]] = arith.cmpi ult
// NAN: arith.select %[[WRITTEN]], %[[WIDE]]
// NAN: tile.print "{}add-checks.k:8: in `gathered`: {} is written to argument 2 at index [{}], in block [{}, {}, {}]"
// NAN-SAME: tile.check = "add-checks.k:8: in `gathered`: NaN is written to argument 2"
tile.kernel @gathered(%x: !tile.view<1xf32>, %i: !tile.view<1xindex>, %y: !tile.view<1xf32, mut>, %limit: index) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %at = tile.load %i[%c0] fill %c0 : !tile.view<1xindex> -> tensor<8xindex>
  %all = tile.splat %limit : index -> tensor<8xindex>
  %mask = arith.cmpi slt, %at, %all : tensor<8xindex>
  %v = tile.gather %x[%at] fill %zero mask %mask : !tile.view<1xf32>, tensor<8xindex> -> tensor<8xf32> loc("add-checks.k":7:3)
  tile.store %v, %y[%c0] : tensor<8xf32>, !tile.view<1xf32, mut> loc("add-checks.k":8:3)
  tile.return
}

// -----

// A persistent kernel names the tile. Narrow floats are compared in f32, and integers are never NaN.
// BOUNDS-LABEL: tile.kernel @parts
// BOUNDS: tile.print "{}{{.*}}add-checks.mlir:{{[0-9]+}}: in `parts`: index [{}] leaves the extents [{}] of argument 0, in tile [{}]"
// BOUNDS-NEXT: tile.drop
// NAN-LABEL: tile.kernel @parts
// NAN: arith.extf %{{.*}} : tensor<8xbf16> to tensor<8xf32>
// NAN: tile.print "{}{{.*}}add-checks.mlir:{{[0-9]+}}: in `parts`: {} is written to a part of argument 0 at index [{}], in tile [{}]"
// NAN-NOT: tile.print
tile.kernel @parts(%x: !tile.view<2xbf16, mut>, %n: !tile.view<1xi32, mut>, %count: index) {
  tile.for_tiles (%t) to (%count) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : bf16
    %row = tile.drop %x [0] at (%t) : !tile.view<2xbf16, mut> -> !tile.view<1xbf16, mut>
    %v = tile.load %row[%c0] fill %zero : !tile.view<1xbf16, mut> -> tensor<8xbf16>
    tile.store %v, %row[%c0] : tensor<8xbf16>, !tile.view<1xbf16, mut>
    %one = arith.constant dense<1> : tensor<8xi32>
    tile.store %one, %n[%c0] : tensor<8xi32>, !tile.view<1xi32, mut>
  }
  tile.return
}

// -----

// Updates are checked whether or not their old values are used.
// BOUNDS-LABEL: tile.kernel @updates
// BOUNDS: tile.print "{}{{.*}}: in `updates`: index [{}] leaves the extents [{}] of argument 0
// BOUNDS: %[[OLD:.*]] = tile.atomic add
// BOUNDS: tile.print "{}{{.*}}: in `updates`: index [{}] leaves the extents [{}] of argument 0
// BOUNDS: tile.atomic compare_exchange %{{.*}}, %{{.*}}[%{{.*}}] expected %[[OLD]]
// NAN-LABEL: tile.kernel @updates
// NAN: tile.print "{}{{.*}}: in `updates`: {} is written to argument 0 at index [{}]
// NAN: tile.atomic add
// NAN: tile.print "{}{{.*}}: in `updates`: {} is written to argument 0 at index [{}]
// NAN: tile.atomic compare_exchange
tile.kernel @updates(%y: !tile.view<1xf32, mut>, %i: !tile.view<1xindex>, %v: f32) {
  %c0 = arith.constant 0 : index
  %at = tile.load %i[%c0] fill %c0 : !tile.view<1xindex> -> tensor<8xindex>
  %value = tile.splat %v : f32 -> tensor<8xf32>
  %old = tile.atomic add %value, %y[%at] : tensor<8xf32>, !tile.view<1xf32, mut>, tensor<8xindex> -> tensor<8xf32>
  tile.atomic compare_exchange %value, %y[%at] expected %old : tensor<8xf32>, !tile.view<1xf32, mut>, tensor<8xindex>
  tile.return
}
