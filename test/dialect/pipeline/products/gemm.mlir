// Checks the instructions of a matrix product for one thread: the order of the ops in one iteration of its loop.
// RUN: kpkg-opt %s --pass-pipeline='builtin.module(gpu-pipeline{chip=sm_80})' | kpkg-opt --lower-nvvm | FileCheck %s

// Three iterations are copied ahead, then the first fragments are read.
// CHECK-LABEL: llvm.func @gemm
// CHECK-COUNT-8: selp.b32 %n, 16, 0, $2; cp.async.cg.shared.global.L2::128B [$0], [$1], 16, %n;
// CHECK: nvvm.cp.async.commit.group
// CHECK-COUNT-8: cp.async.cg
// CHECK: nvvm.cp.async.commit.group
// CHECK-COUNT-8: cp.async.cg
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.cp.async.wait.group 2
// CHECK: nvvm.barrier
// CHECK-COUNT-4: nvvm.ldmatrix {{.*}}<row>
// CHECK-COUNT-4: nvvm.ldmatrix {{.*}}<col>
// CHECK-NOT: ldmatrix

// The loop: fragments of the second half, copies, products of the first half, fragments of the next iteration.
// CHECK: ^bb
// CHECK-COUNT-4: nvvm.ldmatrix {{.*}}<row>
// CHECK-COUNT-4: nvvm.ldmatrix {{.*}}<col>
// CHECK-COUNT-8: cp.async.cg
// CHECK: nvvm.cp.async.commit.group
// CHECK-NOT: ldmatrix
// CHECK-COUNT-32: nvvm.mma.sync {{.*}}<bf16>
// CHECK-NOT: mma.sync
// CHECK: nvvm.cp.async.wait.group 2
// CHECK: nvvm.barrier
// CHECK-COUNT-4: nvvm.ldmatrix {{.*}}<row>
// CHECK-COUNT-4: nvvm.ldmatrix {{.*}}<col>
// CHECK-NOT: nvvm.barrier
// CHECK-COUNT-32: mma.sync
// CHECK-NOT: {{mma.sync|ldmatrix}}
// CHECK: llvm.br
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: st.global.v4.b32
// CHECK: llvm.return
tile.kernel @gemm(%a: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>, %b: !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>, %d: !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>) {
  %zero = arith.constant 0.0 : bf16
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c31 = arith.constant 31 : index
  %c32 = arith.constant 32 : index
  %c128 = arith.constant 128 : index
  %m = tile.block_id x
  %n = tile.block_id y
  %r = arith.muli %m, %c128 : index
  %c = arith.muli %n, %c128 : index
  %depth = tile.dim %a, 1 : !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32>
  %up = arith.addi %depth, %c31 : index
  %count = arith.divui %up, %c32 : index
  %acc = arith.constant dense<0.0> : tensor<128x128xf32>
  %sum = scf.for %k = %c0 to %count step %c1 iter_args(%s = %acc) -> tensor<128x128xf32> {
    %kk = arith.muli %k, %c32 : index
    %x = tile.load %a[%r, %kk] fill %zero : !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32> -> tensor<128x32xbf16>
    %y = tile.load %b[%kk, %c] fill %zero : !tile.view<2xbf16, unit = 1, align = 16, divisible = 8, index = 32> -> tensor<32x128xbf16>
    %t = tile.dot %x, %y, %s : tensor<128x32xbf16>, tensor<32x128xbf16>, tensor<128x128xf32>
    scf.yield %t : tensor<128x128xf32>
  }
  %o = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
  tile.store %o, %d[%r, %c] : tensor<128x128xbf16>, !tile.view<2xbf16, mut, unit = 1, align = 16, divisible = 8, index = 32>
  tile.return
}
