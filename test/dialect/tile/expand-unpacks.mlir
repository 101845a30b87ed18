// Tests that unpacked words become shifts and masks.
// RUN: kpkg-opt --tile-expand-unpacks %s | FileCheck %s

// CHECK-LABEL: tile.kernel @nibbles
// CHECK-DAG: %[[W:.*]] = tile.splat %{{.*}} : i32 -> tensor<2x4xi32>
// CHECK: %[[ALL:.*]] = tile.broadcast %{{.*}} : tensor<2x4x1xi32> -> tensor<2x4x8xi32>
// CHECK: %[[SHIFT:.*]] = tile.broadcast %{{.*}} : tensor<1x1x8xi32> -> tensor<2x4x8xi32>
// CHECK: %[[MOVED:.*]] = arith.shrui %[[ALL]], %[[SHIFT]]
// CHECK: %[[FIELDS:.*]] = arith.andi %[[MOVED]], %{{.*}}
// CHECK: %[[BYTES:.*]] = arith.trunci %[[FIELDS]] : tensor<2x4x8xi32> to tensor<2x4x8xi8>
// CHECK: tile.reshape %[[BYTES]] : tensor<2x4x8xi8> -> tensor<2x32xi8>
// CHECK-NOT: tile.unpack
tile.kernel @nibbles(%a: i32, %x: !tile.view<2xi8, mut>, %i: index) {
  %w = tile.splat %a : i32 -> tensor<2x4xi32>
  %v = tile.unpack %w bits 4 : tensor<2x4xi32> -> tensor<2x32xi8>
  tile.store %v, %x[%i, %i] : tensor<2x32xi8>, !tile.view<2xi8, mut>
  tile.return
}

// Bytes need no truncation. Signs are extended, and numbers converted at the end.
// CHECK-LABEL: tile.kernel @signed
// CHECK: arith.shrui
// CHECK-NOT: arith.trunci
// CHECK: %[[FLIPPED:.*]] = arith.xori %{{.*}}, %[[SIGN:.*]] : tensor<4x4xi8>
// CHECK: %[[NUMBERS:.*]] = arith.subi %[[FLIPPED]], %[[SIGN]] : tensor<4x4xi8>
// CHECK: %[[LINE:.*]] = tile.reshape %[[NUMBERS]] : tensor<4x4xi8> -> tensor<16xi8>
// CHECK: arith.sitofp %[[LINE]] : tensor<16xi8> to tensor<16xbf16>
tile.kernel @signed(%a: i8, %x: !tile.view<1xbf16, mut>, %i: index) {
  %w = tile.splat %a : i8 -> tensor<4xi8>
  %v = tile.unpack %w signed bits 2 : tensor<4xi8> -> tensor<16xbf16>
  tile.store %v, %x[%i] : tensor<16xbf16>, !tile.view<1xbf16, mut>
  tile.return
}

// Floats are half of a number from a table of 4-bit fields, with the sign of the field.
// CHECK-LABEL: tile.kernel @floats
// CHECK: %[[WORDS:.*]] = arith.extui %{{.*}} : tensor<16xi8> to tensor<16xi32>
// CHECK: %[[DOUBLES:.*]] = arith.constant dense<-932957680> : tensor<16xi32>
// CHECK: %[[DOUBLE:.*]] = arith.shrui %[[DOUBLES]], %{{.*}}
// CHECK: %[[WHOLE:.*]] = arith.andi %[[DOUBLE]], %{{.*}}
// CHECK: %[[HALF:.*]] = arith.constant dense<5.000000e-01> : tensor<16xf32>
// CHECK: %[[NUMBER:.*]] = arith.sitofp %[[WHOLE]]
// CHECK: %[[SIZE:.*]] = arith.mulf %[[NUMBER]], %[[HALF]]
// CHECK: arith.ori
// CHECK: arith.truncf %{{.*}} : tensor<16xf32> to tensor<16xbf16>
tile.kernel @floats(%a: i8, %x: !tile.view<1xbf16, mut>, %i: index) {
  %w = tile.splat %a : i8 -> tensor<8xi8>
  %v = tile.unpack %w float bits 4 : tensor<8xi8> -> tensor<16xbf16>
  tile.store %v, %x[%i] : tensor<16xbf16>, !tile.view<1xbf16, mut>
  tile.return
}
