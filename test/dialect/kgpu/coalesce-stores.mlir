// Accumulators of products are stored in whole vectors where the view allows them.
// RUN: kpkg-opt %s --kgpu-coalesce-stores | FileCheck %s

#sum = #kgpu.layout<"reg 1:1 0:8 1:8-32 0:16-32 lane 1:2-4 0:1-4 warp 1:64 0:64 rep 1x1">
!fast = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8>
!pairs = !tile.view<2xbf16, mut, unit = 1, align = 4, divisible = 2>
!any = !tile.view<2xbf16, mut>

// CHECK: #[[SUM:.*]] = #kgpu.layout<"reg 1:1 0:8
// CHECK: #[[VECTORS:.*]] = #kgpu.layout<"reg 1:1 {{.*}} 1:2-4

// CHECK-LABEL: tile.kernel @stores
// CHECK: %[[V:.*]] = kgpu.cvt_layout %{{.*}} : tensor<128x128xbf16, #[[SUM]]> -> tensor<128x128xbf16, #[[VECTORS]]>
// CHECK: tile.store %[[V]], %arg0
// CHECK: tile.store %{{.*}}, %arg1[{{.*}}] : tensor<128x128xbf16, #[[SUM]]>
// CHECK: tile.store %{{.*}}, %arg2[{{.*}}] : tensor<128x128xbf16, #[[SUM]]>
tile.kernel @stores(%x: !fast, %y: !pairs, %z: !any) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.threads = 128 : i32} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<0.0> : tensor<128x128xbf16, #sum>
  tile.store %v, %x[%c0, %c0] : tensor<128x128xbf16, #sum>, !fast
  tile.store %v, %y[%c0, %c0] : tensor<128x128xbf16, #sum>, !pairs
  tile.store %v, %z[%c0, %c0] : tensor<128x128xbf16, #sum>, !any
  tile.return
}

// Bytes that were loaded along rows and are stored along columns go through a layout in which threads have whole vectors of columns.
#turned = #kgpu.layout<"reg 0:1-8 1:64 lane 0:16-32 1:1-4 warp 1:8-32 rep 1x1">
!bytes = !tile.view<2xi8, mut, unit = 1, align = 16, divisible = 16>
// CHECK-LABEL: tile.kernel @turned
// CHECK: %[[W:.*]] = kgpu.cvt_layout
// CHECK: tile.store %[[W]], %arg0
tile.kernel @turned(%x: !bytes) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.threads = 256 : i32} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<0> : tensor<64x128xi8, #turned>
  tile.store %v, %x[%c0, %c0] : tensor<64x128xi8, #turned>, !bytes
  tile.return
}
