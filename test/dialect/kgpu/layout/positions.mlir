// Checks that positions with uses as a column and as a row are computed for both, so that threads exchange nothing.
// RUN: kpkg-opt --kgpu-assign-layouts --canonicalize --cse %s | FileCheck %s

// CHECK-LABEL: tile.kernel @mask
// CHECK-DAG: %[[COLUMN:.*]] = tile.reshape %{{.*}} -> tensor<64x1xi32, #[[OVER:.*]]>
// CHECK-DAG: %[[ROW:.*]] = tile.reshape %{{.*}} -> tensor<1x64xi32, #{{.*}}>
// CHECK-DAG: tile.broadcast %[[COLUMN]]
// CHECK-DAG: tile.broadcast %[[ROW]]
// CHECK-NOT: kgpu.cvt_layout
// CHECK: tile.return
tile.kernel @mask(%x: !tile.view<2xf32, unit = 1, align = 16>, %y: !tile.view<2xf32, mut, unit = 1, align = 16>)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %least = arith.constant dense<0xFF800000> : tensor<64x64xf32>
  %s = tile.load %x[%c0, %c0] fill %zero : !tile.view<2xf32, unit = 1, align = 16> -> tensor<64x64xf32>
  %numbers = tile.iota : tensor<64xindex>
  %narrow = arith.index_cast %numbers : tensor<64xindex> to tensor<64xi32>
  %column = tile.reshape %narrow : tensor<64xi32> -> tensor<64x1xi32>
  %row = tile.reshape %narrow : tensor<64xi32> -> tensor<1x64xi32>
  %down = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x64xi32>
  %along = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %seen = arith.cmpi sle, %along, %down : tensor<64x64xi32>
  %result = arith.select %seen, %s, %least : tensor<64x64xi1>, tensor<64x64xf32>
  tile.store %result, %y[%c0, %c0] : tensor<64x64xf32>, !tile.view<2xf32, mut, unit = 1, align = 16>
  tile.return
}
