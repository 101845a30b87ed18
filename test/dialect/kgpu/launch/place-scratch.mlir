// Tests the placement of scratch memory into shared memory.
// RUN: kpkg-opt --kgpu-place-scratch --split-input-file --verify-diagnostics %s | FileCheck %s

!scratch = !tile.view<2xf32, mut, unit = 1, align = 16, index = 32>

// CHECK-LABEL: tile.kernel @placed
// CHECK: %[[BUFFER:.*]] = kgpu.alloc : !kgpu.smem<64x33xf32>
// CHECK: %[[VIEW:.*]] = kgpu.view_buffer %[[BUFFER]] : !kgpu.smem<64x33xf32> -> !tile.view<2xf32, mut, unit = 1, align = 16, index = 32>
// CHECK: tile.store %{{.*}}, %[[VIEW]]
// CHECK-NOT: tile.scratch
tile.kernel @placed() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<64x33xf32>
  %m = tile.scratch [64, 33] : !scratch
  tile.store %v, %m[%c0, %c0] : tensor<64x33xf32>, !scratch
  tile.return
}

// -----

tile.kernel @packed() attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128, blocks = 4>} {
  %c0 = arith.constant 0 : index
  %v = arith.constant dense<1.0> : tensor<8xf32>
  // expected-error @+1 {{is in a kernel with roles or clusters, or with several blocks in a CTA}}
  %m = tile.scratch [8] : !tile.view<1xf32, mut>
  tile.store %v, %m[%c0] : tensor<8xf32>, !tile.view<1xf32, mut>
  tile.return
}
