// Tests asynchronous gathers of row pieces to shared memory, one vector per thread at a time. Elements outside copy no
// bytes and become zero.
// RUN: kpkg-opt --split-input-file --verify-diagnostics --lower-gpu --canonicalize --cse %s | FileCheck %s

#wide = #kgpu.layout<"reg 1:1-4 lane 1:8 0:1-8 rep 1x1">
#column = #kgpu.layout<"lane * 0:1-8 rep 1x1">
#line = #kgpu.layout<"reg 0:1-4 lane 0:8 *4 rep 1">
#row = #kgpu.layout<"reg 1:1-4 lane 1:8 *4 rep 1x1">
!table = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: gpu.func @rows
// The facts permit 32-bit offsets.
// CHECK: arith.muli %{{.*}} : i32
// CHECK: arith.extsi %{{.*}} : i32 to i64
// CHECK: %[[INSIDE:.*]] = arith.andi %{{.*}} : i1
// CHECK: selp.b32 %n, 16, 0, $2; cp.async.ca.shared.global [$0], [$1], 16, %n;{{.*}} %[[INSIDE]]
// CHECK-NOT: cp.async.c{{[ag]}}
// CHECK: nvvm.cp.async.commit.group
tile.kernel @rows(%table: !table, %block: index, %inside: i1) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32, shared = 512>} {
  %c16 = arith.constant 16 : index
  %r = arith.constant dense<3> : tensor<16x1xindex, #column>
  %rows = tile.broadcast %r : tensor<16x1xindex, #column> -> tensor<16x16xindex, #wide>
  %i = tile.iota : tensor<16xindex, #line>
  %j = tile.reshape %i : tensor<16xindex, #line> -> tensor<1x16xindex, #row>
  %first = arith.muli %block, %c16 : index
  %at = tile.splat %first : index -> tensor<1x16xindex, #row>
  %c = arith.addi %at, %j : tensor<1x16xindex, #row>
  %columns = tile.broadcast %c : tensor<1x16xindex, #row> -> tensor<16x16xindex, #wide>
  %buffer = kgpu.alloc offset 0 : !kgpu.smem<16x16xf16>
  kgpu.async_gather %table[%rows, %columns] if %inside to %buffer : !table[tensor<16x16xindex, #wide>, tensor<16x16xindex, #wide>], !kgpu.smem<16x16xf16>
  kgpu.async_commit
  tile.return
}

// -----

#wide = #kgpu.layout<"reg 1:1-4 lane 1:8 0:1-8 rep 1x1">
!odd = !tile.view<2xf16, unit = 1, index = 32>
tile.kernel @single_elements(%table: !odd) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32, shared = 512>} {
  %at = arith.constant dense<3> : tensor<16x16xindex, #wide>
  %buffer = kgpu.alloc offset 0 : !kgpu.smem<16x16xf16>
  // expected-error @+1 {{has vectors of 2 bytes; copies are of 4, 8 or 16}}
  kgpu.async_gather %table[%at, %at] to %buffer : !odd[tensor<16x16xindex, #wide>, tensor<16x16xindex, #wide>], !kgpu.smem<16x16xf16>
  tile.return
}
