// Checks rows that a scatter writes. Lanes exchange elements of a product so that each has whole vectors of a row, and
// coordinates have the same layout.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,canonicalize))' | FileCheck %s
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_80})' | kpkg-opt --lower-nvvm --canonicalize --cse | FileCheck %s --check-prefix=LLVM
// If facts permit no vectors, elements are written one by one without an exchange.
// RUN: sed 's/unit = 1, align = 16, divisible = 8, index = 32> \/\/ rows/unit = 1, index = 32>/' %s | kpkg-opt --pass-pipeline='builtin.module(tile.kernel(kgpu-assign-layouts,canonicalize))' | FileCheck %s --check-prefix=SINGLE

!x = !tile.view<2xf16, unit = 1, align = 16, divisible = 8, index = 32>
!numbers = !tile.view<1xi32, unit = 0, index = 32>
!d = !tile.view<2xf16, mut, unit = 1, align = 16, divisible = 8, index = 32> // rows

// CHECK-DAG: #[[SUM:.*]] = #kgpu.layout<"reg 1:1 0:8
// CHECK-DAG: #[[ROWS:.*]] = #kgpu.layout<"reg 1:1 {{.*}}1:2-4
// CHECK-LABEL: tile.kernel @product
// CHECK: %[[V:.*]] = kgpu.cvt_layout %{{.*}} : tensor<64x64xf16, #[[SUM]]> -> tensor<64x64xf16, #[[ROWS]]>
// CHECK-NOT: kgpu.cvt_layout {{.*}}xindex
// CHECK: tile.scatter %[[V]], %arg3[%{{.*}}, %{{.*}}] : tensor<64x64xf16, #[[ROWS]]>, {{.*}}, tensor<64x64xindex, #[[ROWS]]>

// LLVM-LABEL: llvm.func @product
// LLVM: st.global.v4.b32
// LLVM-NOT: st.global.b16

// SINGLE-LABEL: tile.kernel @product
// SINGLE-NOT: kgpu.cvt_layout {{.*}}xf16
// SINGLE: tile.scatter
tile.kernel @product(%a: !x, %b: !x, %numbers: !numbers, %d: !d) attributes {kgpu.target = #kgpu.target<"sm_80">, kgpu.launch = #kgpu.launch<threads = 128>} {
  %zero = arith.constant 0.0 : f16
  %none = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %acc = arith.constant dense<0.0> : tensor<64x64xf32>
  %u = tile.load %a[%c0, %c0] fill %zero : !x -> tensor<64x32xf16>
  %v = tile.load %b[%c0, %c0] fill %zero : !x -> tensor<32x64xf16>
  %sum = tile.dot %u, %v, %acc : tensor<64x32xf16>, tensor<32x64xf16>, tensor<64x64xf32>
  %n = tile.load %numbers[%c0] fill %none : !numbers -> tensor<64xi32>
  %column = tile.reshape %n : tensor<64xi32> -> tensor<64x1xi32>
  %wide = arith.index_cast %column : tensor<64x1xi32> to tensor<64x1xindex>
  %r = tile.broadcast %wide : tensor<64x1xindex> -> tensor<64x64xindex>
  %i = tile.iota : tensor<64xindex>
  %line = tile.reshape %i : tensor<64xindex> -> tensor<1x64xindex>
  %c = tile.broadcast %line : tensor<1x64xindex> -> tensor<64x64xindex>
  %half = arith.truncf %sum : tensor<64x64xf32> to tensor<64x64xf16>
  tile.scatter %half, %d[%r, %c] : tensor<64x64xf16>, !d, tensor<64x64xindex>
  tile.return
}
