// Checks that warps share a long scan: each scans its parts, all scan the totals, and parts are combined with those.
// RUN: kpkg-opt --kgpu-expand-scans %s | FileCheck %s
// RUN: kpkg-opt --kgpu-expand-scans --kgpu-localise-scans --kgpu-expand-cvt --kgpu-alloc-smem --kgpu-insert-barriers --kgpu-verify --lower-nvvm %s | FileCheck %s --check-prefix=LLVM

#wide = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 rep 1x32">
#short = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 rep 1x1">
#far = #kgpu.layout<"reg 1:1-2 lane 1:4-64 warp 1:128-256 block 1:512 rep 1x8">
!in = !tile.view<2xf32, unit = 1, align = 16, divisible = 4, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// CHECK-LABEL: tile.kernel @row
// CHECK: %[[V:.*]] = tile.load
// CHECK: %[[R:.*]] = tile.reshape %[[V]] : tensor<1x16384xf32, {{.*}}> -> tensor<1x128x128xf32, #[[PARTS:.*]]>
// CHECK: %[[P:.*]], %[[T:.*]] = kgpu.partial_scan(%[[R]] : {{.*}}) axis 2 -> {{.*}}, tensor<1x128x1xf32, #[[TOTALS:.*]]> {
// CHECK: kgpu.local_store %[[T]], %[[M:.*]] :
// CHECK: %[[G:.*]] = kgpu.local_load %[[M]]
// CHECK: %[[E:.*]], %{{.*}} = kgpu.partial_scan(%[[G]] : {{.*}}) axis 1 exclusive
// CHECK: kgpu.local_store %[[E]], %[[N:.*]] :
// CHECK: %[[B:.*]] = kgpu.local_load %[[N]] : {{.*}} -> tensor<1x128x1xf32, #[[TOTALS]]>
// CHECK: %[[Q:.*]] = kgpu.put_before(%[[B]], %[[P]] : {{.*}}) axis 1 -> tensor<1x128x128xf32, #[[PARTS]]>
// CHECK: %[[S:.*]] = tile.reshape %[[Q]] : {{.*}} -> tensor<1x16384xf32, {{.*}}>
// CHECK: tile.store %[[S]]
// LLVM-LABEL: llvm.func @row
// LLVM: nvvm.barrier
// LLVM: nvvm.barrier
tile.kernel @row(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<1x16384xf32, #wide>
  %s = tile.scan (%v : tensor<1x16384xf32, #wide>) axis 1 {
  ^bb0(%lhs: f32, %rhs: f32):
    %sum = arith.addf %lhs, %rhs : f32
    tile.yield %sum : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<1x16384xf32, #wide>, !out
  tile.return
}

// CTAs of a cluster send their totals to each other.
// CHECK-LABEL: tile.kernel @clustered
// CHECK: kgpu.remote_store
// CHECK: kgpu.local_load
// CHECK: kgpu.local_store
// CHECK: kgpu.put_before
// LLVM-LABEL: llvm.func @clustered
// LLVM: cluster.wait
tile.kernel @clustered(%x: !in, %y: !out) attributes {kgpu.launch = #kgpu.launch<threads = 128, cluster = 2>, kgpu.target = #kgpu.target<"sm_90a">} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<1x8192xf32, #far>
  %s = tile.scan (%v : tensor<1x8192xf32, #far>) axis 1 {
  ^bb0(%lhs: f32, %rhs: f32):
    %sum = arith.addf %lhs, %rhs : f32
    tile.yield %sum : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<1x8192xf32, #far>, !out
  tile.return
}

// Every warp performs a short scan by itself.
// CHECK-LABEL: tile.kernel @short
// CHECK-NOT: partial_scan
// LLVM-LABEL: llvm.func @short
tile.kernel @short(%x: !in) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %v = arith.constant dense<1.0> : tensor<1x512xf32, #short>
  %s = tile.scan (%v : tensor<1x512xf32, #short>) axis 1 {
  ^bb0(%lhs: f32, %rhs: f32):
    %sum = arith.addf %lhs, %rhs : f32
    tile.yield %sum : f32
  }
  tile.return
}
