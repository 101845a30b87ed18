// Tests inclusive scans within a warp.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse --split-input-file --verify-diagnostics %s | FileCheck %s

#row = #kgpu.layout<"reg 1:1 lane 1:2-4 0:1-4 rep 1x3">
!in = !tile.view<2xf32, unit = 1, align = 8, divisible = 2, index = 32>
!out = !tile.view<2xf32, mut, unit = 1, align = 8, divisible = 2, index = 32>

// Three repeats of 2 registers and 4 lanes: each repeat has one sum in the thread and two exchanges of totals. The
// repeats follow in order.
// CHECK-LABEL: gpu.func @sums
// CHECK-COUNT-6: gpu.shuffle {{ *}}xor
// CHECK-NOT: gpu.shuffle
// CHECK: st.global
tile.kernel @sums(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !in -> tensor<8x24xf32, #row>
  %s = tile.scan (%v : tensor<8x24xf32, #row>) axis 1 {
  ^bb0(%lhs: f32, %rhs: f32):
    %sum = arith.addf %lhs, %rhs : f32
    tile.yield %sum : f32
  }
  tile.store %s, %y[%c0, %c0] : tensor<8x24xf32, #row>, !out
  tile.return
}

// -----

#row = #kgpu.layout<"lane 0:1-16 rep 1">
!in = !tile.view<1xf32, unit = 0, align = 4, divisible = 1, index = 32>
!out = !tile.view<1xf32, mut, unit = 0, align = 4, divisible = 1, index = 32>

// A first-order recurrence: pairs with a combination that is not commutative. Lower lanes stay on the left.
// CHECK-LABEL: gpu.func @recurrence
// CHECK-COUNT-9: gpu.shuffle {{ *}}xor
// CHECK-NOT: gpu.shuffle
tile.kernel @recurrence(%a: !in, %b: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %a[%c0] fill %zero : !in -> tensor<32xf32, #row>
  %w = tile.load %b[%c0] fill %zero : !in -> tensor<32xf32, #row>
  %s:2 = tile.scan (%v, %w : tensor<32xf32, #row>, tensor<32xf32, #row>) axis 0 {
  ^bb0(%la: f32, %lb: f32, %ra: f32, %rb: f32):
    %p = arith.mulf %la, %ra : f32
    %q = arith.mulf %lb, %ra : f32
    %r = arith.addf %q, %rb : f32
    tile.yield %p, %r : f32, f32
  }
  tile.store %s#1, %y[%c0] : tensor<32xf32, #row>, !out
  tile.return
}

// -----

#row = #kgpu.layout<"reg 0:32-64 lane 0:1-16 rep 1">
!in = !tile.view<1xi32, unit = 0, align = 4, divisible = 1, index = 32>
!out = !tile.view<1xi32, mut, unit = 0, align = 4, divisible = 1, index = 32>

// All registers of a splat hold one value, but the tile scanned with it differs. Both totals of four registers are
// shuffled over five lane bits.
// CHECK-LABEL: gpu.func @beside_splat
// CHECK-COUNT-20: gpu.shuffle {{ *}}xor
// CHECK-NOT: gpu.shuffle
tile.kernel @beside_splat(%key: f32, %x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %k = tile.splat %key : f32 -> tensor<128xf32, #row>
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<128xi32, #row>
  %s:2 = tile.scan (%k, %v : tensor<128xf32, #row>, tensor<128xi32, #row>) axis 0 {
  ^bb0(%la: f32, %lb: i32, %ra: f32, %rb: i32):
    %p = arith.maximumf %la, %ra : f32
    %q = arith.maxsi %lb, %rb : i32
    tile.yield %p, %q : f32, i32
  }
  tile.store %s#1, %y[%c0] : tensor<128xi32, #row>, !out
  tile.return
}

// -----

#row = #kgpu.layout<"lane 0:1-16 warp 0:32 rep 1">
!in = !tile.view<1xf32, unit = 0, align = 4, divisible = 1, index = 32>
!out = !tile.view<1xf32, mut, unit = 0, align = 4, divisible = 1, index = 32>

tile.kernel @warps(%x: !in, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0] fill %zero : !in -> tensor<64xf32, #row>
  // expected-error@+1 {{cannot be scanned: the elements along dimension 0 of layout "lane 0:1-16 warp 0:32 rep 1" lie in several warps}}
  %s = tile.scan (%v : tensor<64xf32, #row>) axis 0 {
  ^bb0(%lhs: f32, %rhs: f32):
    %sum = arith.addf %lhs, %rhs : f32
    tile.yield %sum : f32
  }
  tile.store %s, %y[%c0] : tensor<64xf32, #row>, !out
  tile.return
}
