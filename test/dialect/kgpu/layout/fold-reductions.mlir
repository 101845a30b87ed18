// Checks that a carried sum has one element for all rows of a thread, and that elements of other threads stay separate.
// RUN: kpkg-opt --kgpu-fold-reductions --split-input-file %s | FileCheck %s
// RUN: kpkg-opt --kgpu-fold-reductions --split-input-file '--remarks-filter=kgpu-fold-reductions' %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: [Passed] carried sum with fewer elements | Category:kgpu-fold-reductions | Function=rows | Remark="a thread sums 4 elements in each iteration"
// REMARK-DAG: [Passed] carried sum with fewer elements | Category:kgpu-fold-reductions | Function=short | Remark="a thread sums 4 elements in each iteration"
// REMARK-DAG: [Missed] carried sum with fewer elements | Category:kgpu-fold-reductions | Function=kept | Reason="it does not begin at zero"

#rows = #kgpu.layout<"reg 1:1-4 0:1-2 lane 1:8-128 warp 1:256-2048 rep 1x1">
#one = #kgpu.layout<"reg 1:1-4 lane 1:8-128 warp 1:256-2048 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK: #[[ONE:layout.*]] = #kgpu.layout<"reg 1:1-4 lane 1:8-128 warp 1:256-2048 rep 1x1">
// CHECK-LABEL: tile.kernel @rows
// CHECK: %[[ALL:.*]]:2 = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}, %[[B:.*]] = %{{.*}}) -> (tensor<1x4096xf32, #[[ONE]]>, tensor<1x4096xf32, #[[ONE]]>)
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[APART:.*]] = tile.reshape %[[V]] : tensor<4x4096xf32, #{{.*}}> -> tensor<4x1x4096xf32, #{{.*}}>
// CHECK-NEXT: %[[SUM:.*]] = tile.reduce sum %[[APART]] axis 0
// CHECK-NEXT: %[[FLAT:.*]] = tile.reshape %[[SUM]] : {{.*}} -> tensor<1x4096xf32, #[[ONE]]>
// CHECK-NEXT: arith.addf %[[A]], %[[FLAT]] : tensor<1x4096xf32, #[[ONE]]>
// The product of an FMA becomes part of the addend.
// CHECK: arith.mulf %[[V]], %[[V]] fastmath<contract>
// CHECK: arith.addf %[[B]], %{{.*}} : tensor<1x4096xf32, #[[ONE]]>
// CHECK: tile.reduce sum %[[ALL]]#0 axis 0 : tensor<1x4096xf32, #[[ONE]]> -> tensor<1x4096xf32, #[[ONE]]>
tile.kernel @rows(%x: !in, %y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %fill = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<4x4096xf32, #rows>
  %all:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zeros, %b = %zeros) -> (tensor<4x4096xf32, #rows>, tensor<4x4096xf32, #rows>) {
    %v = tile.load %x[%i, %c0] fill %fill : !in -> tensor<4x4096xf32, #rows>
    %s = arith.addf %a, %v : tensor<4x4096xf32, #rows>
    %t = math.fma %v, %v, %b : tensor<4x4096xf32, #rows>
    scf.yield %s, %t : tensor<4x4096xf32, #rows>, tensor<4x4096xf32, #rows>
  }
  %r = tile.reduce sum %all#0 axis 0 : tensor<4x4096xf32, #rows> -> tensor<1x4096xf32, #one>
  %q = tile.reduce sum %all#1 axis 0 : tensor<4x4096xf32, #rows> -> tensor<1x4096xf32, #one>
  tile.store %r, %y[%c0, %c0] : tensor<1x4096xf32, #one>, !out
  tile.store %q, %y[%c1, %c0] : tensor<1x4096xf32, #one>, !out
  tile.return
}

// -----

// Rows in lanes and warps stay; those above them are folded.
#rows = #kgpu.layout<"reg 1:1-4 0:32-64 lane 1:8-64 0:1 warp 0:2-16 rep 1x1">
#one = #kgpu.layout<"reg 1:1-4 lane 1:8-64 * warp *4 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK: #[[HELD:layout.*]] = #kgpu.layout<"reg 1:1-4 lane 1:8-64 0:1 warp 0:2-16 rep 1x1">
// CHECK-LABEL: tile.kernel @short
// CHECK: scf.for {{.*}} -> (tensor<32x128xf32, #[[HELD]]>)
// CHECK: tile.reshape %{{.*}} -> tensor<4x32x128xf32, #{{.*}}>
// CHECK: tile.reduce sum %{{.*}} axis 0 : tensor<32x128xf32, #[[HELD]]>
tile.kernel @short(%x: !in, %y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %fill = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<128x128xf32, #rows>
  %all = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zeros) -> (tensor<128x128xf32, #rows>) {
    %v = tile.load %x[%i, %c0] fill %fill : !in -> tensor<128x128xf32, #rows>
    %s = arith.addf %a, %v : tensor<128x128xf32, #rows>
    scf.yield %s : tensor<128x128xf32, #rows>
  }
  %r = tile.reduce sum %all axis 0 : tensor<128x128xf32, #rows> -> tensor<1x128xf32, #one>
  tile.store %r, %y[%c0, %c0] : tensor<1x128xf32, #one>, !out
  tile.return
}

// -----

// A sum is not folded if single rows are used after the loop, or if it does not start at zero.
#rows = #kgpu.layout<"reg 1:1-4 0:1-2 lane 1:8-128 warp 1:256-2048 rep 1x1">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: tile.kernel @kept
// CHECK-NOT: tile.reshape
tile.kernel @kept(%x: !in, %y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %fill = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<4x4096xf32, #rows>
  %ones = arith.constant dense<1.0> : tensor<4x4096xf32, #rows>
  %all:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %zeros, %b = %ones) -> (tensor<4x4096xf32, #rows>, tensor<4x4096xf32, #rows>) {
    %v = tile.load %x[%i, %c0] fill %fill : !in -> tensor<4x4096xf32, #rows>
    %s = arith.addf %a, %v : tensor<4x4096xf32, #rows>
    %t = arith.addf %b, %v : tensor<4x4096xf32, #rows>
    scf.yield %s, %t : tensor<4x4096xf32, #rows>, tensor<4x4096xf32, #rows>
  }
  tile.store %all#0, %y[%c0, %c0] : tensor<4x4096xf32, #rows>, !out
  %r = tile.reduce sum %all#1 axis 0 : tensor<4x4096xf32, #rows> -> tensor<1x4096xf32, #kgpu.layout<"reg 1:1-4 lane 1:8-128 warp 1:256-2048 rep 1x1">>
  tile.store %r, %y[%c1, %c0] : tensor<1x4096xf32, #kgpu.layout<"reg 1:1-4 lane 1:8-128 warp 1:256-2048 rep 1x1">>, !out
  tile.return
}
