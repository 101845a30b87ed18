// Tests that layouts go from a product's operand back to the words that it is unpacked from: nothing moves in between.
// RUN: kpkg-opt --kgpu-assign-layouts --canonicalize --cse %s | FileCheck %s

!words = !tile.view<1xi32, unit = 0, align = 16, divisible = 8, index = 32>
!x = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!y = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 8, index = 32>

// A thread's fields are four adjacent words.
// CHECK-DAG: #[[WORDS:.*]] = #kgpu.layout<"reg 0:1-2 lane 0:4-64 warp 0:128-256 rep 1">
// CHECK-LABEL: tile.kernel @in_order_of_threads
// CHECK: %[[W:.*]] = tile.load {{.*}} -> tensor<512xi32, #[[WORDS]]>
// CHECK: tile.unpack %[[W]] signed bits 4 : tensor<512xi32, #[[WORDS]]> -> tensor<4096xbf16, #{{.*}}>
// CHECK-NOT: kgpu.cvt_layout
// CHECK: tile.dot
tile.kernel @in_order_of_threads(%q: !words, %x: !x, %y: !y)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %w = tile.load %q[%c0] fill %none : !words -> tensor<512xi32>
  %v = tile.unpack %w signed bits 4 : tensor<512xi32> -> tensor<4096xbf16>
  %parts = tile.reshape %v : tensor<4096xbf16> -> tensor<4x8x4x4x2x2x2xbf16>
  %rows = tile.permute %parts [0, 6, 1, 3, 5, 2, 4] : tensor<4x8x4x4x2x2x2xbf16> -> tensor<4x2x8x4x2x4x2xbf16>
  %a = tile.reshape %rows : tensor<4x2x8x4x2x4x2xbf16> -> tensor<64x64xbf16>
  %t = tile.load %x[%c0, %c0] fill %zero : !x -> tensor<64x64xbf16>
  %b = tile.permute %t [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
  %r = tile.dot %a, %b, %zeros : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  tile.store %r, %y[%c0, %c0] : tensor<64x64xf32>, !y
  tile.return
}

// Threads that multiply hold two adjacent elements of a row, but words have eight: the numbers move.
// CHECK-LABEL: tile.kernel @in_rows
// CHECK: %[[V:.*]] = tile.unpack
// CHECK: kgpu.cvt_layout
// CHECK: tile.dot
tile.kernel @in_rows(%q: !words, %x: !x, %y: !y)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 256, consumers = 1>} {
  %zero = arith.constant 0.0 : bf16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %w = tile.load %q[%c0] fill %none : !words -> tensor<512xi32>
  %lines = tile.reshape %w : tensor<512xi32> -> tensor<64x8xi32>
  %a = tile.unpack %lines bits 4 : tensor<64x8xi32> -> tensor<64x64xbf16>
  %t = tile.load %x[%c0, %c0] fill %zero : !x -> tensor<64x64xbf16>
  %b = tile.permute %t [1, 0] : tensor<64x64xbf16> -> tensor<64x64xbf16>
  %r = tile.dot %a, %b, %zeros : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
  tile.store %r, %y[%c0, %c0] : tensor<64x64xf32>, !y
  tile.return
}
