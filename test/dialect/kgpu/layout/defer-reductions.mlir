// Checks sums of rows that four lanes share: each lane carries its own sum, and lanes exchange them after the loop.
// RUN: kpkg-opt --kgpu-defer-reductions --split-input-file %s | FileCheck %s
// RUN: kpkg-opt --kgpu-defer-reductions --split-input-file '--remarks-filter=kgpu-defer-reductions' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] sum exchanged after the loop | Category:kgpu-defer-reductions | Function=rows | Remark="lanes exchange their parts once, after the loop"
// REMARK-DAG: [Passed] sum exchanged after the loop | Category:kgpu-defer-reductions | Function=halves | Remark="lanes exchange their parts once, after the loop"

#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-64 rep 1x1">
#row = #kgpu.layout<"reg 0:8 lane *2 0:1-4 warp 0:16-64 rep 1x1">
#any = #kgpu.layout<"reg 1:1-32 lane 0:1-16 warp 0:32-64 * rep 1x1">
#turned = #kgpu.layout<"reg 0:1-32 lane 1:1-16 warp 1:32 *2 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xf32, mut, unit = 1>

// CHECK: #[[PARTS:layout.*]] = #kgpu.layout<"reg 0:8 lane 1:1-2 0:1-4 warp 0:16-64 rep 1x1">
// CHECK-LABEL: tile.kernel @rows
// CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[CARRIED:.*]] = %{{.*}}) -> (tensor<128x4xf32, #[[PARTS]]>)
// CHECK: %[[S:.*]] = tile.dot
// CHECK: %[[KEEP:.*]] = tile.reduce max %[[S]]
// CHECK: %[[APART:.*]] = tile.reshape %[[S]] : {{.*}} -> tensor<128x8x4x2xf32, #{{.*}}>
// CHECK: %[[LOW:.*]] = tile.reduce sum %[[APART]] axis 3
// CHECK: %[[HIGH:.*]] = tile.reduce sum %[[LOW]] axis 1
// CHECK: %[[OWN:.*]] = tile.reshape %[[HIGH]] : {{.*}} -> tensor<128x4xf32, #[[PARTS]]>
// CHECK: %[[FACTOR:.*]] = tile.broadcast %[[KEEP]] : {{.*}} -> tensor<128x4xf32, #[[PARTS]]>
// CHECK: %[[BEFORE:.*]] = arith.mulf %[[CARRIED]], %[[FACTOR]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[BEFORE]], %[[OWN]]
// CHECK: scf.yield %[[NEXT]]
// CHECK: %[[WHOLE:.*]] = tile.reduce sum %[[SUM]] axis 1
// CHECK: tile.store %[[WHOLE]]
tile.kernel @rows(%x: !in, %y: !in, %z: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 384, consumers = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<128x1xf32, #row>
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32, #acc>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%t = %none) -> (tensor<128x1xf32, #row>) {
    %a = tile.load %x[%i, %c0] fill %zero : !in -> tensor<128x64xbf16, #any>
    %b = tile.load %y[%i, %c0] fill %zero : !in -> tensor<64x64xbf16, #turned>
    %s = tile.dot %a, %b, %zeros : tensor<128x64xbf16, #any>, tensor<64x64xbf16, #turned>, tensor<128x64xf32, #acc>
    %keep = tile.reduce max %s axis 1 : tensor<128x64xf32, #acc> -> tensor<128x1xf32, #row>
    %r = tile.reduce sum %s axis 1 : tensor<128x64xf32, #acc> -> tensor<128x1xf32, #row>
    %scaled = arith.mulf %t, %keep : tensor<128x1xf32, #row>
    %next = arith.addf %scaled, %r : tensor<128x1xf32, #row>
    scf.yield %next : tensor<128x1xf32, #row>
  }
  tile.store %sum, %z[%c0, %c0] : tensor<128x1xf32, #row>, !out
  tile.return
}

// -----

// Two warpgroups have half of each row: each carries its own sums until the loop ends.
#acc = #kgpu.layout<"reg 1:1 0:8 1:8-16 lane 1:2-4 0:1-4 warp 0:16-32 1:32 rep 1x1">
#row = #kgpu.layout<"reg 0:8 lane *2 0:1-4 warp 0:16-32 * rep 1x1">
#any = #kgpu.layout<"reg 1:1-32 lane 0:1-16 warp 0:32 *2 rep 1x1">
#turned = #kgpu.layout<"reg 0:1-32 lane 1:1-16 warp 1:32 *2 rep 1x1">
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xf32, mut, unit = 1>
// CHECK: #[[BOTH:layout.*]] = #kgpu.layout<"reg 0:8 lane 1:1-2 0:1-4 warp 0:16-32 1:4 rep 1x1">
// CHECK-LABEL: tile.kernel @halves
// CHECK: %[[SUM:.*]] = scf.for {{.*}} -> (tensor<64x8xf32, #[[BOTH]]>)
// CHECK: %[[S:.*]] = tile.dot
// CHECK: %[[APART:.*]] = tile.reshape %[[S]] : {{.*}} -> tensor<64x2x4x4x2xf32, #{{.*}}>
// CHECK: %[[LOW:.*]] = tile.reduce sum %[[APART]] axis 4
// CHECK: %[[HIGH:.*]] = tile.reduce sum %[[LOW]] axis 2
// CHECK: tile.reshape %[[HIGH]] : {{.*}} -> tensor<64x8xf32, #[[BOTH]]>
// CHECK: tile.reduce sum %[[SUM]] axis 1 : tensor<64x8xf32, #[[BOTH]]> -> tensor<64x1xf32
tile.kernel @halves(%x: !in, %y: !in, %z: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 384, consumers = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant dense<0.0> : tensor<64x1xf32, #row>
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32, #acc>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%t = %none) -> (tensor<64x1xf32, #row>) {
    %a = tile.load %x[%i, %c0] fill %zero : !in -> tensor<64x64xbf16, #any>
    %b = tile.load %y[%i, %c0] fill %zero : !in -> tensor<64x64xbf16, #turned>
    %s = tile.dot %a, %b, %zeros : tensor<64x64xbf16, #any>, tensor<64x64xbf16, #turned>, tensor<64x64xf32, #acc>
    %r = tile.reduce sum %s axis 1 : tensor<64x64xf32, #acc> -> tensor<64x1xf32, #row>
    %next = arith.addf %t, %r : tensor<64x1xf32, #row>
    scf.yield %next : tensor<64x1xf32, #row>
  }
  tile.store %sum, %z[%c0, %c0] : tensor<64x1xf32, #row>, !out
  tile.return
}

// -----

// Sums are not deferred if the loop uses them, starts at another number, or has no product.
#acc = #kgpu.layout<"reg 1:1 0:8 1:8-32 lane 1:2-4 0:1-4 warp 0:16-64 rep 1x1">
#row = #kgpu.layout<"reg 0:8 lane *2 0:1-4 warp 0:16-64 rep 1x1">
!in = !tile.view<2xf32, unit = 1>
!out = !tile.view<2xf32, mut, unit = 1>
// CHECK-LABEL: tile.kernel @kept
// CHECK-NOT: tile.reshape
tile.kernel @kept(%x: !in, %z: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %none = arith.constant dense<0.0> : tensor<128x1xf32, #row>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%t = %none) -> (tensor<128x1xf32, #row>) {
    %s = tile.load %x[%i, %c0] fill %zero : !in -> tensor<128x64xf32, #acc>
    %r = tile.reduce sum %s axis 1 : tensor<128x64xf32, #acc> -> tensor<128x1xf32, #row>
    %next = arith.addf %t, %r : tensor<128x1xf32, #row>
    scf.yield %next : tensor<128x1xf32, #row>
  }
  tile.store %sum, %z[%c0, %c0] : tensor<128x1xf32, #row>, !out
  tile.return
}
