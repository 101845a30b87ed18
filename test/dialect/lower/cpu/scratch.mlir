// Tests scratch memory on CPUs: part of the memory of the task, whose updates need no atomic instructions.
// RUN: kpkg-opt %s --lower-cpu-emit | FileCheck %s

!memory = !tile.view<1xi32, mut, unit = 0, align = 16, divisible = 16, index = 32>

// A load reads before the next store, although its tile is used later.
// CHECK-LABEL: llvm.func @exchanged
// CHECK-NOT: llvm.atomicrmw
// CHECK: arith.addi
// CHECK: llvm.cmpxchg
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @global
// CHECK: llvm.atomicrmw add
tile.kernel @exchanged(%y: !tile.view<1xi32, mut>) {
  %zero = arith.constant 0 : i32
  %c0 = arith.constant 0 : index
  %none = arith.constant dense<0> : tensor<64xi32>
  %i = tile.iota : tensor<64xindex>
  %m = tile.scratch [64] : !memory
  tile.store %none, %m[%c0] : tensor<64xi32>, !memory
  tile.atomic add %none, %m[%i] : tensor<64xi32>, !memory, tensor<64xindex>
  %v = tile.load %m[%c0] fill %zero : !memory -> tensor<64xi32>
  %old = tile.atomic compare_exchange %v, %m[%i] expected %none : tensor<64xi32>, !memory, tensor<64xindex> -> tensor<64xi32>
  %sum = arith.addi %v, %old : tensor<64xi32>
  tile.store %sum, %y[%c0] : tensor<64xi32>, !tile.view<1xi32, mut>
  tile.return
}

tile.kernel @global(%y: !tile.view<1xi32, mut>) {
  %none = arith.constant dense<0> : tensor<64xi32>
  %i = tile.iota : tensor<64xindex>
  tile.atomic add %none, %y[%i] : tensor<64xi32>, !tile.view<1xi32, mut>, tensor<64xindex>
  tile.return
}
