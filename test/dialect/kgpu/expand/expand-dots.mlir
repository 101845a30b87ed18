// Checks that operands are stored to shared memory, and that the sum over K is a loop of rank-1 updates.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-configure{chip=sm_90a},kgpu-assign-layouts,kgpu-expand-dots))' | FileCheck %s

// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: #kgpu.launch<threads = 128
// CHECK: %[[A:.*]] = arith.extf %{{.*}} : tensor<64x16xbf16, #{{.*}}> to tensor<64x16xf32, #{{.*}}>
// CHECK: %[[T:.*]] = tile.permute %[[A]] [1, 0]
// CHECK: tile.reshape %[[T]] : tensor<16x64xf32, #{{.*}}> -> tensor<16x64x1xf32, #{{.*}}>
// CHECK: %[[LEFT:.*]] = kgpu.alloc : !kgpu.smem<16x64x1xf32>
// CHECK: %[[RIGHT:.*]] = kgpu.alloc : !kgpu.smem<16x1x64xf32>
// CHECK: scf.for %[[K:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}})
// CHECK: %[[SLOT:.*]] = kgpu.slot %[[LEFT]][%[[K]]] : !kgpu.smem<16x64x1xf32> -> !kgpu.smem<64x1xf32>
// CHECK: %[[COLUMN:.*]] = kgpu.local_load %[[SLOT]]
// CHECK: tile.broadcast %[[COLUMN]]
// CHECK-COUNT-8: math.fma
// CHECK-NOT: math.fma
// CHECK-NOT: tile.dot
tile.kernel @product(%a: !tile.view<2xbf16>, %b: !tile.view<2xbf16>, %d: !tile.view<2xf32, mut>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<64x16xbf16>
  %y = tile.load %b[%c0, %c0] fill %zero : !tile.view<2xbf16> -> tensor<16x64xbf16>
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = tile.dot %x, %y, %acc : tensor<64x16xbf16>, tensor<16x64xbf16>, tensor<64x64xf32>
  tile.store %r, %d[%c0, %c0] : tensor<64x64xf32>, !tile.view<2xf32, mut>
  tile.return
}

// CHECK-LABEL: tile.kernel @integers
// CHECK: arith.extsi
// CHECK: arith.muli
tile.kernel @integers(%a: !tile.view<2xi8>, %b: !tile.view<2xi8>, %d: !tile.view<2xi32, mut>) {
  %zero = arith.constant 0 : i8
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] fill %zero : !tile.view<2xi8> -> tensor<16x16xi8>
  %y = tile.load %b[%c0, %c0] fill %zero : !tile.view<2xi8> -> tensor<16x16xi8>
  %acc = arith.constant dense<0> : tensor<16x16xi32>
  %r = tile.dot %x, %y, %acc : tensor<16x16xi8>, tensor<16x16xi8>, tensor<16x16xi32>
  tile.store %r, %d[%c0, %c0] : tensor<16x16xi32>, !tile.view<2xi32, mut>
  tile.return
}
