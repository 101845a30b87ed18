// Tests that tensor maps are the last parameters, each passed by value.
// RUN: kpkg-opt --lower-nvvm %s | FileCheck %s

!in = !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
!out = !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>

// Two views of five words, the grid, two maps.
// CHECK: llvm.func @maps(%arg0: !llvm.ptr<1>
// CHECK-SAME: %arg12: i32, %arg13: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant},
// CHECK-SAME: %arg14: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant})
tile.kernel @maps(%x: !in, %y: !out)
    attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>,
                kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [128, 64], swizzle = 128>,
                                    #kgpu.tensor_map<arg = 1, box = [64, 64], swizzle = 128>]} {
  tile.return
}

// The maps follow the address of the report.
// CHECK: llvm.func @reported(%arg0: !llvm.ptr<1>
// CHECK-SAME: %arg8: !llvm.ptr<1>, %arg9: !llvm.ptr {llvm.align = 64 : i64, llvm.byval
tile.kernel @reported(%x: !in) attributes {kgpu.target = #kgpu.target<"sm_90a">, kgpu.launch = #kgpu.launch<threads = 128>,
                                           kgpu.tensor_maps = [#kgpu.tensor_map<arg = 0, box = [128, 64], swizzle = 128>]} {
  %c0 = arith.constant 0 : index
  %rows = tile.dim %x, 0 : !in
  %some = arith.cmpi sgt, %rows, %c0 : index
  tile.assert %some, "rows" : i1
  tile.return
}
