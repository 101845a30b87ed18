// Checks stores in a loop and after it. They share buffers, in panels as narrow as the narrowest rows of the loop.
// Without such a loop, each store has panels as wide as its rows allow.
// RUN: kpkg-opt --kgpu-configure=chip=sm_90a --kgpu-schedule-tiles --kgpu-assign-layouts --kgpu-tensor-stores %s | FileCheck %s

// CHECK-LABEL: tile.kernel @both
// CHECK: %[[BUFFERS:.*]] = kgpu.alloc : !kgpu.smem<2x4x64x32xbf16
// CHECK-NOT: kgpu.alloc
// CHECK: scf.for
// CHECK: scf.for
// CHECK: kgpu.tensor_store %{{.*}}, %arg2[{{.*}}] map 0 through %[[BUFFERS]] : tensor<128x32xbf16
// CHECK: kgpu.tensor_store %{{.*}}, %arg3[{{.*}}] map 1 through %[[BUFFERS]] : tensor<128x64xbf16
!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
tile.kernel @both(%a: !in, %b: !in, %p: !out, %d: !out) attributes {schedule = #tile.schedule<stages = 2>} {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %none = arith.constant dense<0.0> : tensor<128x32xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %rows = tile.dim %a, 0 : !in
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  %tm = arith.ceildivsi %rows, %c32 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %sum = scf.for %j = %c0 to %tm step %c1 iter_args(%x = %zeros) -> tensor<128x64xf32> {
      %m = arith.muli %j, %c32 : index
      %q = tile.load %b[%m, %c0] fill %zero : !in -> tensor<32x64xbf16>
      %qt = tile.permute %q [1, 0] : tensor<32x64xbf16> -> tensor<64x32xbf16>
      %s = tile.dot %k, %qt, %none : tensor<128x64xbf16>, tensor<64x32xbf16>, tensor<128x32xf32>
      %narrow = arith.truncf %s : tensor<128x32xf32> to tensor<128x32xbf16>
      tile.store %narrow, %p[%n, %m] : tensor<128x32xbf16>, !out
      %x1 = tile.dot %narrow, %q, %x : tensor<128x32xbf16>, tensor<32x64xbf16>, tensor<128x64xf32>
      scf.yield %x1 : tensor<128x64xf32>
    }
    %result = arith.truncf %sum : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %result, %d[%n, %c0] : tensor<128x64xbf16>, !out
  }
  tile.return
}

// CHECK-LABEL: tile.kernel @apart
// CHECK-DAG: %[[WIDE:.*]] = kgpu.alloc : !kgpu.smem<2x2x64x64xbf16
// CHECK-DAG: %[[NARROW:.*]] = kgpu.alloc : !kgpu.smem<2x4x64x32xbf16
// CHECK: kgpu.tensor_store %{{.*}}, %arg2[{{.*}}] map 0 through %[[NARROW]] : tensor<128x32xbf16
// CHECK: kgpu.tensor_store %{{.*}}, %arg3[{{.*}}] map 1 through %[[WIDE]] : tensor<128x64xbf16
tile.kernel @apart(%a: !in, %b: !in, %p: !out, %d: !out) {
  %zero = arith.constant 0.0 : bf16
  %zeros = arith.constant dense<0.0> : tensor<128x64xf32>
  %none = arith.constant dense<0.0> : tensor<128x32xf32>
  %c0 = arith.constant 0 : index
  %c128 = arith.constant 128 : index
  %columns = tile.dim %d, 0 : !out
  %tn = arith.ceildivsi %columns, %c128 : index
  tile.for_tiles (%i) to (%tn) {
    %n = arith.muli %i, %c128 : index
    %k = tile.load %a[%n, %c0] fill %zero : !in -> tensor<128x64xbf16>
    %q = tile.load %b[%c0, %c0] fill %zero : !in -> tensor<32x64xbf16>
    %g = tile.load %b[%c0, %c0] fill %zero : !in -> tensor<64x64xbf16>
    %qt = tile.permute %q [1, 0] : tensor<32x64xbf16> -> tensor<64x32xbf16>
    %s = tile.dot %k, %qt, %none : tensor<128x64xbf16>, tensor<64x32xbf16>, tensor<128x32xf32>
    %t = tile.dot %k, %g, %zeros : tensor<128x64xbf16>, tensor<64x64xbf16>, tensor<128x64xf32>
    %narrow = arith.truncf %s : tensor<128x32xf32> to tensor<128x32xbf16>
    tile.store %narrow, %p[%n, %c0] : tensor<128x32xbf16>, !out
    %result = arith.truncf %t : tensor<128x64xf32> to tensor<128x64xbf16>
    tile.store %result, %d[%n, %c0] : tensor<128x64xbf16>, !out
  }
  tile.return
}
