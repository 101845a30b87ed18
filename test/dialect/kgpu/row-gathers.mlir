// Rows that a product gathers: whole vectors of a row for each thread, coordinates of rows before the loop, and the gather an iteration or more before its use.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,kgpu-expand-mma,kgpu-ring-copies,canonicalize))' | FileCheck %s

!x = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>
!plain = !tile.view<2xf16, unit = 1, index = 32>
!rows = !tile.view<1xi32, unit = 0, index = 32>
!d = !tile.view<2xf32, mut, unit = 1>

// CHECK: #[[ROWS:layout[0-9]+]] = #kgpu.layout<"reg 1:1-4 0:32 lane 1:8-16
// CHECK-LABEL: tile.kernel @product
// CHECK: tile.broadcast %{{.*}} -> tensor<64x32xindex, #[[ROWS]]>
// CHECK: kgpu.alloc : !kgpu.smem<3x64x32xf16
// CHECK: kgpu.alloc : !kgpu.smem<3x32x64xf16
// CHECK: tile.gather %arg0{{.*}} -> tensor<64x32xf16, #[[ROWS]]>
// CHECK: tile.gather %arg0
// CHECK: scf.for
// CHECK-NEXT: kgpu.async_wait
// CHECK-NEXT: kgpu.barrier
// CHECK-NOT: kgpu.cvt_layout
// CHECK: %[[AHEAD:.*]] = tile.gather %arg0
// CHECK: kgpu.local_load
// CHECK: kgpu.mma
// CHECK: kgpu.local_store %[[AHEAD]], %{{.*}} ahead
// CHECK: scf.yield
tile.kernel @product(%x: !x, %b: !x, %numbers: !rows, %d: !d, %count: index)
    attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.threads = 128 : i32, kgpu.stages = 3 : i32} {
  %zero = arith.constant 0.0 : f16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %n = tile.load %numbers[%c0] fill %none : !rows -> tensor<64xi32>
  %column = tile.reshape %n : tensor<64xi32> -> tensor<64x1xi32>
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %acc) -> tensor<64x64xf32> {
    %at = arith.muli %k, %c32 : index
    %wide = arith.index_cast %column : tensor<64x1xi32> to tensor<64x1xindex>
    %r = tile.broadcast %wide : tensor<64x1xindex> -> tensor<64x32xindex>
    %i = tile.iota : tensor<32xindex>
    %line = tile.reshape %i : tensor<32xindex> -> tensor<1x32xindex>
    %first = tile.splat %at : index -> tensor<1x32xindex>
    %c = arith.addi %first, %line : tensor<1x32xindex>
    %cb = tile.broadcast %c : tensor<1x32xindex> -> tensor<64x32xindex>
    %u = tile.gather %x[%r, %cb] fill %zero : !x, tensor<64x32xindex> -> tensor<64x32xf16>
    %v = tile.load %b[%at, %c0] fill %zero : !x -> tensor<32x64xf16>
    %t = tile.dot %u, %v, %s : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
    scf.yield %t : tensor<64x64xf32>
  }
  tile.store %sum, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}
