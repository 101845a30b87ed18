// Checks that weights are published in two parts, so that products of the first one overlap with computing the second.
// RUN: kpkg-opt --kgpu-publish-parts %s | FileCheck %s
// RUN: kpkg-opt --kgpu-publish-parts '--remarks-filter=kgpu-publish-parts' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] computed operand in two parts | Category:kgpu-publish-parts | Function=attend | Remark="products of the first part run while the second part is computed"
// REMARK-DAG: [Missed] computed operand in two parts | Category:kgpu-publish-parts | Function=loaded | Reason="its tile is not computed element by element"

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-64 lane 1:2-4 0:1-4 warp 0:16-32 1:128 rep 1x1">
#made = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-32 * rep 1x1">
#row = #kgpu.layout<"reg 0:8 lane *2 0:1-4 warp 0:16-32 * rep 1x1">
!in = !tile.view<2xf32, unit = 1, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, index = 32>
!weight = !tile.view<2xbf16, unit = 1, index = 32>
!values = !kgpu.smem<64x256xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x4 stride 0,8192">
!weights = !kgpu.smem<1x64x64xbf16, "2B 1:144,288,576,1024,2048,4096 2:2,4,8,16,32,64 rep 1x1x1">
!slot = !kgpu.smem<64x64xbf16, "2B 0:144,288,576,1024,2048,4096 1:2,4,8,16,32,64 rep 1x1">
!barriers = !kgpu.smem<2x1xi64>
!one = !kgpu.ring<1>

// CHECK: #[[HALF:.*]] = #kgpu.layout<"reg 1:1 0:8 1:8-16 lane 1:2-4 0:1-4 warp 0:16-32 * rep 1x1">
// CHECK-LABEL: tile.kernel @attend
// CHECK-NOT: !kgpu.smem<1x64x64xbf16
// CHECK: %[[FIRST:.*]] = kgpu.alloc : !kgpu.smem<1x64x32xbf16, "2B 1:64,144,288,512,1024,2048 2:2,4,8,16,32
// CHECK: %[[RING:.*]] = kgpu.ring published
// CHECK: %[[SECOND:.*]] = kgpu.alloc : !kgpu.smem<1x64x32xbf16
// CHECK: %[[OTHER:.*]] = kgpu.ring published
// CHECK-NOT: kgpu.ring published
// CHECK: } consumers {
// CHECK: kgpu.await %[[RING]][%[[USE:[a-z0-9_]+]]]
// CHECK: %[[P:.*]] = kgpu.slot %[[FIRST]]
// CHECK: %[[A:.*]] = kgpu.wgmma %[[P]], %{{[^,]*}}, %{{.*}} adds %[[SOME:.*]] :
// CHECK: %[[B:.*]] = kgpu.wgmma %[[P]], %{{[^,]*}}, %{{.*}} adds %[[SOME]] :
// CHECK: kgpu.await %[[OTHER]][%[[USE]]]
// CHECK: %[[Q:.*]] = kgpu.slot %[[SECOND]]
// Products of the second part always add to those of the first.
// CHECK: %[[TRUE:.*]] = arith.constant true
// CHECK: %[[C:.*]] = kgpu.wgmma %[[Q]], %{{.*}} from 32, %[[A]] adds %[[TRUE]] :
// CHECK: %[[D:.*]] = kgpu.wgmma %[[Q]], %{{.*}} from 32, %[[B]] adds %[[TRUE]] :
// CHECK: kgpu.wgmma_wait 1 %[[C]]
// CHECK: kgpu.wgmma_wait 0 %[[D]]
// CHECK: kgpu.release %[[RING]][%[[USE]]]
// CHECK: kgpu.release %[[OTHER]][%[[USE]]]
// CHECK: } producers {
// CHECK: %[[S:.*]] = tile.load
// CHECK: %[[L:.*]] = kgpu.columns %[[S]] from 0 : {{.*}} -> tensor<64x32xf32, #[[HALF]]>
// CHECK: %[[E:.*]] = math.exp2 %[[L]]
// CHECK: arith.truncf %[[E]]
// CHECK: kgpu.publish %{{.*}} signals %[[RING]][%[[USE]]]
// CHECK: %[[R:.*]] = kgpu.columns %[[S]] from 32
// CHECK: %[[F:.*]] = math.exp2 %[[R]]
// CHECK: arith.truncf %[[F]]
// CHECK: kgpu.publish %{{.*}} signals %[[OTHER]][%[[USE]]]
// Uses of the whole tile follow.
// CHECK: %[[WHOLE:.*]] = kgpu.join_columns %[[E]], %[[F]]
// CHECK: tile.reduce sum %[[WHOLE]]

// A tile that no elementwise op computes is published whole.
// CHECK-LABEL: tile.kernel @loaded
// CHECK: kgpu.publish %{{.*}} : tensor<64x64xbf16
tile.kernel @attend(%x: !in, %w: !weight, %some: i1, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 512, consumers = 2, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %use = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %nothing = arith.constant dense<0.0> : tensor<64x256xf32, #acc>
  %c = kgpu.alloc : !values
  %d = kgpu.alloc : !values
  %0 = kgpu.alloc : !weights
  %1 = kgpu.alloc : !barriers
  %ring = kgpu.ring published %1 : !barriers -> !one
  kgpu.roles producer_warp {
    %nobody = arith.constant 0 : index
  } consumers {
    kgpu.await %ring[%use] : !one
    %p = kgpu.slot %0[%c0] : !weights -> !slot
    %a = kgpu.wgmma %p, %c, %nothing adds %some : !slot, !values, tensor<64x256xf32, #acc>
    %b = kgpu.wgmma %p, %d, %nothing adds %some : !slot, !values, tensor<64x256xf32, #acc>
    %low = kgpu.wgmma_wait 1 %a : tensor<64x256xf32, #acc> -> tensor<64x256xf32, #acc>
    %high = kgpu.wgmma_wait 0 %b : tensor<64x256xf32, #acc> -> tensor<64x256xf32, #acc>
    kgpu.release %ring[%use] : !one
    tile.store %low, %y[%c0, %c0] : tensor<64x256xf32, #acc>, !out
    tile.store %high, %y[%c0, %c256] : tensor<64x256xf32, #acc>, !out
  } producers {
    %s = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<64x64xf32, #made>
    %e = math.exp2 %s : tensor<64x64xf32, #made>
    %sum = tile.reduce sum %e axis 1 : tensor<64x64xf32, #made> -> tensor<64x1xf32, #row>
    %p = arith.truncf %e : tensor<64x64xf32, #made> to tensor<64x64xbf16, #made>
    %slot = kgpu.slot %0[%c0] : !weights -> !slot
    kgpu.publish %p to %slot signals %ring[%use] : tensor<64x64xbf16, #made>, !slot, !one
    tile.store %sum, %y[%c0, %c0] : tensor<64x1xf32, #row>, !out
  }
  tile.return
}
tile.kernel @loaded(%x: !in, %w: !weight, %some: i1, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 512, consumers = 2, producers = 1>, kgpu.target = #kgpu.target<"sm_90a">} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %use = arith.constant 0 : i32
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0.0 : bf16
  %nothing = arith.constant dense<0.0> : tensor<64x256xf32, #acc>
  %c = kgpu.alloc : !values
  %d = kgpu.alloc : !values
  %0 = kgpu.alloc : !weights
  %1 = kgpu.alloc : !barriers
  %ring = kgpu.ring published %1 : !barriers -> !one
  kgpu.roles producer_warp {
    %nobody = arith.constant 0 : index
  } consumers {
    kgpu.await %ring[%use] : !one
    %p = kgpu.slot %0[%c0] : !weights -> !slot
    %a = kgpu.wgmma %p, %c, %nothing adds %some : !slot, !values, tensor<64x256xf32, #acc>
    %b = kgpu.wgmma %p, %d, %nothing adds %some : !slot, !values, tensor<64x256xf32, #acc>
    %low = kgpu.wgmma_wait 1 %a : tensor<64x256xf32, #acc> -> tensor<64x256xf32, #acc>
    %high = kgpu.wgmma_wait 0 %b : tensor<64x256xf32, #acc> -> tensor<64x256xf32, #acc>
    kgpu.release %ring[%use] : !one
    tile.store %low, %y[%c0, %c0] : tensor<64x256xf32, #acc>, !out
    tile.store %high, %y[%c0, %c256] : tensor<64x256xf32, #acc>, !out
  } producers {
    %sum = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<64x1xf32, #row>
    %p = tile.load %w[%c0, %c0] fill %none : !weight -> tensor<64x64xbf16, #made>
    %slot = kgpu.slot %0[%c0] : !weights -> !slot
    kgpu.publish %p to %slot signals %ring[%use] : tensor<64x64xbf16, #made>, !slot, !one
    tile.store %sum, %y[%c0, %c0] : tensor<64x1xf32, #row>, !out
  }
  tile.return
}
