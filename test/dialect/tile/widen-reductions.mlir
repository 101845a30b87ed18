// RUN: kpkg-opt --tile-widen-reductions %s | FileCheck %s

// Sums and products are rounded once; reductions that only select stay unchanged.
// CHECK-LABEL: tile.kernel @rows
// CHECK: %[[X:.*]] = tile.load
// CHECK: %[[WIDE:.*]] = arith.extf %[[X]] : tensor<2x64xbf16> to tensor<2x64xf32>
// CHECK: %[[SUM:.*]] = tile.reduce sum %[[WIDE]] axis 1 : tensor<2x64xf32> -> tensor<2x1xf32>
// CHECK: arith.truncf %[[SUM]] : tensor<2x1xf32> to tensor<2x1xbf16>
// CHECK: tile.reduce prod %{{.*}} axis 0 : tensor<2x64xf32> -> tensor<1x64xf32>
// CHECK: tile.reduce max %[[X]] axis 1 : tensor<2x64xbf16> -> tensor<2x1xbf16>
tile.kernel @rows(%x: !tile.view<2xbf16>, %y: !tile.view<2xbf16, mut>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<2x64xbf16>
  %s = tile.reduce sum %v axis 1 : tensor<2x64xbf16> -> tensor<2x1xbf16>
  %p = tile.reduce prod %v axis 0 : tensor<2x64xbf16> -> tensor<1x64xbf16>
  %m = tile.reduce max %v axis 1 : tensor<2x64xbf16> -> tensor<2x1xbf16>
  tile.store %s, %y[%c0, %c0] : tensor<2x1xbf16>, !tile.view<2xbf16, mut>
  tile.store %p, %y[%c0, %c0] : tensor<1x64xbf16>, !tile.view<2xbf16, mut>
  tile.store %m, %y[%c0, %c0] : tensor<2x1xbf16>, !tile.view<2xbf16, mut>
  tile.return
}
