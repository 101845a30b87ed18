// Tests gathers of rows whose contiguous elements are loaded and stored as vectors. The facts must state that a vector
// is entirely inside or outside the view; otherwise elements are accessed one by one.
// RUN: kpkg-opt --lower-gpu --canonicalize --cse %s | FileCheck %s

#wide = #kgpu.layout<"reg 1:1-4 lane 1:8 0:1-8 rep 1x1">
#column = #kgpu.layout<"lane * 0:1-8 rep 1x1">
#line = #kgpu.layout<"reg 0:1-4 lane 0:8 *4 rep 1">
#row = #kgpu.layout<"reg 1:1-4 lane 1:8 *4 rep 1x1">
!table = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>
!odd = !tile.view<2xf16, unit = 1, index = 32>
!out = !tile.view<2xf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// CHECK-LABEL: gpu.func @rows
// CHECK: ld.global.nc.v4.b32
// CHECK-NOT: ld.global
tile.kernel @rows(%table: !table, %y: !out, %block: index) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %r = arith.constant dense<3> : tensor<16x1xindex, #column>
  %rows = tile.broadcast %r : tensor<16x1xindex, #column> -> tensor<16x16xindex, #wide>
  %i = tile.iota : tensor<16xindex, #line>
  %j = tile.reshape %i : tensor<16xindex, #line> -> tensor<1x16xindex, #row>
  %first = arith.muli %block, %c16 : index
  %at = tile.splat %first : index -> tensor<1x16xindex, #row>
  %c = arith.addi %at, %j : tensor<1x16xindex, #row>
  %columns = tile.broadcast %c : tensor<1x16xindex, #row> -> tensor<16x16xindex, #wide>
  %v = tile.gather %table[%rows, %columns] fill %zero : !table, tensor<16x16xindex, #wide> -> tensor<16x16xf16, #wide>
  tile.store %v, %y[%c0, %c0] : tensor<16x16xf16, #wide>, !out
  tile.return
}

// CHECK-LABEL: gpu.func @unaligned
// CHECK-COUNT-8: ld.global.nc.b16
tile.kernel @unaligned(%table: !odd, %y: !out) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %r = arith.constant dense<3> : tensor<16x1xindex, #column>
  %rows = tile.broadcast %r : tensor<16x1xindex, #column> -> tensor<16x16xindex, #wide>
  %i = tile.iota : tensor<16xindex, #line>
  %j = tile.reshape %i : tensor<16xindex, #line> -> tensor<1x16xindex, #row>
  %columns = tile.broadcast %j : tensor<1x16xindex, #row> -> tensor<16x16xindex, #wide>
  %v = tile.gather %table[%rows, %columns] fill %zero : !odd, tensor<16x16xindex, #wide> -> tensor<16x16xf16, #wide>
  tile.store %v, %y[%c0, %c0] : tensor<16x16xf16, #wide>, !out
  tile.return
}

// CHECK-LABEL: gpu.func @scattered
// CHECK: st.global.v4.b32
// CHECK-NOT: st.global
tile.kernel @scattered(%x: !table, %y: !out, %block: index) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 32>} {
  %zero = arith.constant 0.0 : f16
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %r = arith.constant dense<3> : tensor<16x1xindex, #column>
  %rows = tile.broadcast %r : tensor<16x1xindex, #column> -> tensor<16x16xindex, #wide>
  %i = tile.iota : tensor<16xindex, #line>
  %j = tile.reshape %i : tensor<16xindex, #line> -> tensor<1x16xindex, #row>
  %first = arith.muli %block, %c16 : index
  %at = tile.splat %first : index -> tensor<1x16xindex, #row>
  %c = arith.addi %at, %j : tensor<1x16xindex, #row>
  %columns = tile.broadcast %c : tensor<1x16xindex, #row> -> tensor<16x16xindex, #wide>
  %v = tile.load %x[%c0, %c0] fill %zero : !table -> tensor<16x16xf16, #wide>
  tile.scatter %v, %y[%rows, %columns] : tensor<16x16xf16, #wide>, !out, tensor<16x16xindex, #wide>
  tile.return
}
