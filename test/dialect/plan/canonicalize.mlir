// Tests folds of lists, shapes and dtypes.
// RUN: kpkg-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: plan.func @shapes
plan.func @shapes(%x: !plan.tensor {plan.name = "x"}, %n: i64 {plan.name = "n"}) -> (i64, i64, i64, !plan.list, i64) {
  %c0 = arith.constant 0 : i64
  %m1 = arith.constant -1 : i64
  %l = plan.list [%n, %c0]
  // CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i64
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i64
  %0 = plan.list_get %l, %c0
  %1 = plan.list_len %l
  %shape = plan.shape %x
  // CHECK-DAG: %[[DIM:.*]] = plan.dim %arg0, %[[C0]]
  %2 = plan.list_get %shape, %c0
  %like = plan.empty_like %x
  // CHECK-DAG: %[[SHAPE:.*]] = plan.shape %arg0
  %3 = plan.shape %like
  %t = plan.dtype "float32"
  %empty = plan.empty %l, %t
  %4 = plan.dim %empty, %c0
  // CHECK-NOT: plan.empty
  // CHECK: plan.return %arg1, %[[C2]], %[[DIM]], %[[SHAPE]], %arg1
  plan.return %0, %1, %2, %3, %4 : i64, i64, i64, !plan.list, i64
}

// An index out of range is not folded: it raises when it is reached.
// CHECK-LABEL: plan.func @out_of_range
plan.func @out_of_range(%n: i64 {plan.name = "n"}) -> i64 {
  %c3 = arith.constant 3 : i64
  %l = plan.list [%n, %n]
  // CHECK: plan.list_get
  %0 = plan.list_get %l, %c3
  plan.return %0 : i64
}

// CHECK-LABEL: plan.func @dtypes
plan.func @dtypes(%x: !plan.tensor {plan.name = "x"}, %i: i64 {plan.name = "i"}) -> (i1, i1, i64, i1, !plan.dtype, i1) {
  // CHECK-DAG: %[[T:.*]] = plan.dtype_of %arg0
  // CHECK-DAG: %[[TRUE:.*]] = arith.constant true
  // CHECK-DAG: %[[FALSE:.*]] = arith.constant false
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i64
  %half = plan.dtype "bfloat16"
  %int = plan.dtype "int32"
  %0 = plan.dtype_eq %half, %half
  %1 = plan.dtype_eq %half, %int
  %2 = plan.dtype_size %half
  %3 = plan.dtype_is_float %int
  %view = plan.fold %x, %i
  %4 = plan.dtype_of %view
  %a = plan.string "a"
  %b = plan.string "b"
  %5 = plan.string_eq %a, %b
  // CHECK: plan.return %[[TRUE]], %[[FALSE]], %[[C2]], %[[FALSE]], %[[T]], %[[FALSE]]
  plan.return %0, %1, %2, %3, %4, %5 : i1, i1, i64, i1, !plan.dtype, i1
}

// CHECK-LABEL: plan.func @nothing_there
plan.func @nothing_there(%x: !plan.tensor {plan.name = "x"}) -> (i1, i1, !plan.tensor) {
  // CHECK-DAG: %[[TRUE:.*]] = arith.constant true
  // CHECK-DAG: %[[FALSE:.*]] = arith.constant false
  // CHECK-DAG: %[[E:.*]] = plan.empty_like %arg0
  %none = plan.none
  %0 = plan.is_none %none
  %e = plan.empty_like %x
  %1 = plan.is_none %e
  %c = plan.contiguous %e
  // CHECK: plan.return %[[TRUE]], %[[FALSE]], %[[E]]
  plan.return %0, %1, %c : i1, i1, !plan.tensor
}

// CHECK-LABEL: plan.func @mod
plan.func @mod() -> (i64, i64, i64) {
  %c7 = arith.constant 7 : i64
  %m7 = arith.constant -7 : i64
  %c3 = arith.constant 3 : i64
  %m3 = arith.constant -3 : i64
  // CHECK-DAG: %[[C1:.*]] = arith.constant 1 : i64
  // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : i64
  // CHECK-DAG: %[[M2:.*]] = arith.constant -2 : i64
  %0 = plan.mod %c7, %c3 : i64
  %1 = plan.mod %m7, %c3 : i64
  %2 = plan.mod %c7, %m3 : i64
  // CHECK: plan.return %[[C1]], %[[C2]], %[[M2]]
  plan.return %0, %1, %2 : i64, i64, i64
}
