// Checks products of 8-bit floats: mma.sync has them from sm_89 on, and older chips compute them in float32. The sum of
// each step is added to the accumulator in float32.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_89})' | kpkg-opt --lower-nvvm | FileCheck %s
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_120})' | kpkg-opt --lower-nvvm | FileCheck %s
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_86})' | kpkg-opt --lower-nvvm | FileCheck --check-prefix=OLD --implicit-check-not=mma.m16 --implicit-check-not=mma.sync %s

!a = !tile.view<2xf8E4M3FN, unit = 1, align = 16, divisible = 16, index = 32>
!b = !tile.view<2xf8E4M3FN, unit = 0, align = 16, divisible = 16, index = 32>
!d = !tile.view<2xf32, mut, unit = 1, align = 16, divisible = 4, index = 32>

// 64 x 64 x 64 takes 4 x 8 x 2 instructions, of which each of four warps has a quarter.
// CHECK-LABEL: llvm.func @product
// CHECK: cp.async.cg.shared.global
// CHECK: nvvm.ldmatrix {{.*}}<row>
// CHECK: ^bb
// CHECK-COUNT-16: llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32
// CHECK-NOT: llvm.nvvm.mma
// CHECK-COUNT-32: llvm.fadd
// CHECK: llvm.return
// OLD-LABEL: llvm.func @product
// OLD: llvm.intr.fma
tile.kernel @product(%a: !a, %b: !b, %d: !d) {
  %zero = arith.constant 0.0 : f8E4M3FN
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %depth = tile.dim %a, 1 : !a
  %count = arith.divui %depth, %c64 : index
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %none) -> tensor<64x64xf32> {
    %kk = arith.muli %k, %c64 : index
    %x = tile.load %a[%c0, %kk] fill %zero : !a -> tensor<64x64xf8E4M3FN>
    %y = tile.load %b[%kk, %c0] fill %zero : !b -> tensor<64x64xf8E4M3FN>
    %t = tile.dot %x, %y, %none : tensor<64x64xf8E4M3FN>, tensor<64x64xf8E4M3FN>, tensor<64x64xf32>
    %u = arith.addf %s, %t : tensor<64x64xf32>
    scf.yield %u : tensor<64x64xf32>
  }
  tile.store %sum, %d[%c0, %c0] : tensor<64x64xf32>, !d
  tile.return
}
