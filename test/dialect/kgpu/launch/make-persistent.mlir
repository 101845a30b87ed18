// Checks that clusters loop over kernel blocks.
// RUN: kpkg-opt --kgpu-make-persistent %s | FileCheck %s

!in = !tile.view<2xf32>
!out = !tile.view<2xf32, mut>

// CHECK-LABEL: tile.kernel @rows
// CHECK: %[[ZERO:.*]] = arith.constant 0.0
// CHECK: %[[FIRST:.*]] = tile.block_id x
// CHECK: %[[ALL:.*]] = tile.grid_dim x
// CHECK: %[[CTAS:.*]] = kgpu.cta_count
// CHECK: %[[STEP:.*]] = arith.divui %[[CTAS]], %c8
// CHECK: scf.for %[[I:.*]] = %[[FIRST]] to %[[ALL]] step %[[STEP]] {
// CHECK: %[[Y:.*]] = tile.block_id y
// CHECK: tile.load %arg0[%[[I]], %[[Y]]]
// CHECK: tile.store %{{.*}}, %arg1[%[[I]], %[[Y]]]
// CHECK: }
// CHECK-NEXT: tile.return
tile.kernel @rows(%x: !in, %y: !out)
    attributes {kgpu.launch = #kgpu.launch<threads = 64, cluster = 8, persistent>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %row = tile.block_id x
  %column = tile.block_id y
  %v = tile.load %x[%row, %column] fill %zero : !in -> tensor<1x256xf32>
  tile.store %v, %y[%row, %column] : tensor<1x256xf32>, !out
  tile.return
}

// Without clusters, the step is the number of CTAs.
// CHECK-LABEL: tile.kernel @alone
// CHECK: %[[STEP:.*]] = kgpu.cta_count
// CHECK: scf.for {{.*}} step %[[STEP]] {
tile.kernel @alone(%x: !in, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 64, persistent>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %row = tile.block_id x
  %v = tile.load %x[%row, %row] fill %zero : !in -> tensor<1x256xf32>
  tile.store %v, %y[%row, %row] : tensor<1x256xf32>, !out
  tile.return
}
// With early loads, loads that are the same for all kernel blocks precede the loop, and their elements stay narrow.
// CHECK-LABEL: tile.kernel @weights
// CHECK: %[[W:.*]] = tile.load %arg1[%c0]
// CHECK: scf.for
// CHECK: %[[HELD:.*]] = kgpu.hold %[[W]] : tensor<256xf32>
// CHECK: %[[V:.*]] = tile.load %arg0
// CHECK: tile.reshape %[[HELD]]
tile.kernel @weights(%x: !in, %w: !tile.view<1xf32>, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 64, persistent, early_loads>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %row = tile.block_id x
  %v = tile.load %x[%row, %c0] fill %zero : !in -> tensor<1x256xf32>
  %weight = tile.load %w[%c0] fill %zero : !tile.view<1xf32> -> tensor<256xf32>
  %r = tile.reshape %weight : tensor<256xf32> -> tensor<1x256xf32>
  %p = arith.mulf %v, %r : tensor<1x256xf32>
  tile.store %p, %y[%row, %c0] : tensor<1x256xf32>, !out
  tile.return
}
