// Checks that kgpu-configure reports optimisations that would change the kernel, but that its launch does not ask for.
// RUN: kpkg-opt --kgpu-configure '--remarks-filter=kgpu-(hoist|prefetch|ring).*' %s -o /dev/null 2>&1 | FileCheck %s

// CHECK-DAG: [Missed] load before the kernel waits | Category:kgpu-hoist-loads | Function=weights | Reason="this launch leaves no registers for loads that are issued early"
// CHECK-DAG: [Missed] load one iteration ahead in registers | Category:kgpu-prefetch-loads | Function=rows | Reason="this launch leaves no registers for loads in flight"
// CHECK-DAG: [Missed] loads of later iterations in flight | Category:kgpu-ring-loads | Function=rows | Reason="this launch has no stages; `@schedule(stages=)` beside `warps`, `occupancy` or `cluster` asks for them"
// CHECK-DAG: [Missed] operand copied ahead | Category:kgpu-ring-copies | Function=product | Reason="this launch keeps the operands of one iteration in shared memory at a time"
// CHECK-NOT: Function=asks

!row = !tile.view<2xf32>
!vector = !tile.view<1xf32>
!out = !tile.view<2xf32, mut>
!half = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!halves = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

tile.kernel @weights(%x: !row, %w: !vector, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %v = tile.load %x[%c0, %c0] fill %zero : !row -> tensor<1x256xf32>
  %s = tile.reduce sum %v axis 1 : tensor<1x256xf32> -> tensor<1x1xf32>
  %u = tile.load %w[%c0] fill %zero : !vector -> tensor<256xf32>
  tile.store %s, %y[%c0, %c0] : tensor<1x1xf32>, !out
  tile.return
}

tile.kernel @rows(%x: !row, %y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64>} {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<1x256xf32>
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %sum = scf.for %k = %c0 to %n step %c256 iter_args(%s = %zeros) -> (tensor<1x256xf32>) {
    %v = tile.load %x[%c0, %k] fill %zero : !row -> tensor<1x256xf32>
    %next = arith.addf %s, %v : tensor<1x256xf32>
    scf.yield %next : tensor<1x256xf32>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<1x256xf32>, !out
  tile.return
}

tile.kernel @asks(%x: !row, %y: !out, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 64, prefetch, early_loads, stages = 2>} {
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : tensor<1x256xf32>
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %sum = scf.for %k = %c0 to %n step %c256 iter_args(%s = %zeros) -> (tensor<1x256xf32>) {
    %v = tile.load %x[%c0, %k] fill %zero : !row -> tensor<1x256xf32>
    %next = arith.addf %s, %v : tensor<1x256xf32>
    scf.yield %next : tensor<1x256xf32>
  }
  tile.store %sum, %y[%c0, %c0] : tensor<1x256xf32>, !out
  tile.return
}

tile.kernel @product(%x: !half, %w: !half, %y: !halves, %n: index) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<64x64xf32>
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %d = scf.for %k = %c0 to %n step %c64 iter_args(%sum = %zeros) -> (tensor<64x64xf32>) {
    %a = tile.load %x[%c0, %k] fill %zero : !half -> tensor<64x64xbf16>
    %b = tile.load %w[%k, %c0] fill %zero : !half -> tensor<64x64xbf16>
    %next = tile.dot %a, %b, %sum : tensor<64x64xbf16>, tensor<64x64xbf16>, tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %r = arith.truncf %d : tensor<64x64xf32> to tensor<64x64xbf16>
  tile.store %r, %y[%c0, %c0] : tensor<64x64xbf16>, !halves
  tile.return
}
