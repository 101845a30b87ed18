// Checks that accumulators of products are stored in whole vectors where the view allows them.
// RUN: kpkg-opt %s --kgpu-coalesce-stores | FileCheck %s
// RUN: kpkg-opt --kgpu-coalesce-stores '--remarks-filter=kgpu-coalesce-stores' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] stores of whole vectors | Category:kgpu-coalesce-stores | Function=stores | Remark="threads exchange elements first, and then store up to 8 at once"
// REMARK-DAG: [Missed] stores of whole vectors | Category:kgpu-coalesce-stores | Function=stores | Reason="a thread stores one element at a time: the tensor's address and strides, or the tile's begin, are not known to suit vectors"
// REMARK-DAG: [Passed] stores of whole vectors | Category:kgpu-coalesce-stores | Function=transposed | Remark="threads exchange elements first, and then store up to 16 at once"
// REMARK-DAG: [Passed] stores of whole vectors | Category:kgpu-coalesce-stores | Function=beside_producers | Remark="four threads exchange elements and store a sector of 32 bytes"

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
tile.kernel @stores(%x: !fast, %y: !pairs, %z: !any) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<0.0> : tensor<128x128xbf16, #sum>
  tile.store %v, %x[%c0, %c0] : tensor<128x128xbf16, #sum>, !fast
  tile.store %v, %y[%c0, %c0] : tensor<128x128xbf16, #sum>, !pairs
  tile.store %v, %z[%c0, %c0] : tensor<128x128xbf16, #sum>, !any
  tile.return
}

// Bytes that are loaded along rows and stored along columns are converted to a layout with whole vectors of columns.
#transposed = #kgpu.layout<"reg 0:1-8 1:64 lane 0:16-32 1:1-4 warp 1:8-32 rep 1x1">
!bytes = !tile.view<2xi8, mut, unit = 1, align = 16, divisible = 16>
// CHECK-LABEL: tile.kernel @transposed
// CHECK: %[[W:.*]] = kgpu.cvt_layout
// CHECK: tile.store %[[W]], %arg0
tile.kernel @transposed(%x: !bytes) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256>} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<0> : tensor<64x128xi8, #transposed>
  tile.store %v, %x[%c0, %c0] : tensor<64x128xi8, #transposed>, !bytes
  tile.return
}

// With a producer warpgroup there is no memory for this: four lanes fill a sector of 32 bytes by shuffles. For f32 they
// fill one anyway.
#halves = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 1:128 rep 1x1">
!floats = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4>
// CHECK-LABEL: tile.kernel @beside_producers
// CHECK: %[[X:.*]] = kgpu.cvt_layout %{{.*}} -> tensor<64x256xbf16, #[[QUADS:.*]]>
// CHECK: tile.store %[[X]], %arg0
// CHECK-NOT: kgpu.cvt_layout
tile.kernel @beside_producers(%x: !fast, %y: !pairs, %z: !floats) attributes {kgpu.launch = #kgpu.launch<threads = 512, consumers = 2, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<0.0> : tensor<64x256xbf16, #halves>
  %w = arith.constant dense<0.0> : tensor<64x256xf32, #halves>
  tile.store %v, %x[%c0, %c0] : tensor<64x256xbf16, #halves>, !fast
  tile.store %v, %y[%c0, %c0] : tensor<64x256xbf16, #halves>, !pairs
  tile.store %w, %z[%c0, %c0] : tensor<64x256xf32, #halves>, !floats
  tile.return
}
