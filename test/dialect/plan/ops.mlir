// Tests that every op of the dialect parses, prints and parses again.
// RUN: kpkg-opt %s --verify-roundtrip | FileCheck %s
// RUN: kpkg-opt %s --mlir-print-op-generic | kpkg-opt | FileCheck %s

// CHECK-LABEL: plan.func @"ns::queries"(%arg0: !plan.tensor {plan.name = "x"}, %arg1: i64 {plan.name = "dim"}) -> !plan.tensor
// CHECK-SAME: attributes {doc = "What it does.", schema = "queries(Tensor x, int dim) -> Tensor"}
plan.func @"ns::queries"(%x: !plan.tensor {plan.name = "x"}, %dim: i64 {plan.name = "dim"}) -> !plan.tensor
    attributes {schema = "queries(Tensor x, int dim) -> Tensor", doc = "What it does."} {
  // CHECK: plan.dtype_of %arg0
  %t = plan.dtype_of %x
  // CHECK: plan.rank %arg0
  %rank = plan.rank %x
  // CHECK: plan.dim %arg0, %arg1
  %n = plan.dim %x, %dim
  // CHECK: plan.stride %arg0, %arg1
  %s = plan.stride %x, %dim
  // CHECK: plan.shape %arg0
  %shape = plan.shape %x
  // CHECK: plan.strides %arg0
  %strides = plan.strides %x
  // CHECK: plan.numel %arg0
  %count = plan.numel %x
  // CHECK: plan.is_contiguous %arg0
  %dense = plan.is_contiguous %x
  // CHECK: plan.is_none %arg0
  %absent = plan.is_none %x
  // CHECK: plan.check_dim %arg0, %arg1
  plan.check_dim %x, %dim
  // CHECK: plan.check %arg0
  plan.check %x
  plan.return %x : !plan.tensor
}

// CHECK-LABEL: plan.func @views
plan.func @views(%x: !plan.tensor {plan.name = "x", plan.mut}, %i: i64 {plan.name = "i"}, %l: !plan.list {plan.name = "l"},
                 %t: !plan.dtype {plan.name = "t"}) {
  // CHECK: plan.none
  %none = plan.none
  // CHECK: plan.empty %arg2, %arg3
  %empty = plan.empty %l, %t
  // CHECK: plan.empty_like %arg0
  %like = plan.empty_like %x
  // CHECK: plan.transpose %arg0, %arg1, %arg1
  %0 = plan.transpose %x, %i, %i
  // CHECK: plan.permute %arg0, %arg2
  %1 = plan.permute %x, %l
  // CHECK: plan.expand %arg0, %arg2
  %2 = plan.expand %x, %l
  // CHECK: plan.drop %arg0 [0, 2] at (%arg1, %arg1)
  %3 = plan.drop %x [0, 2] at (%i, %i)
  // CHECK: plan.slice %arg0, %arg1 from %arg1 to %arg1 step %arg1
  %4 = plan.slice %x, %i from %i to %i step %i
  // CHECK: plan.unsqueeze %arg0, %arg1
  %5 = plan.unsqueeze %x, %i
  // CHECK: plan.squeeze %arg0, %arg1
  %6 = plan.squeeze %x, %i
  // CHECK: plan.unfold %arg0, %arg1 size %arg1 step %arg1
  %7 = plan.unfold %x, %i size %i step %i
  // CHECK: plan.fold %arg0, %arg1
  %8 = plan.fold %x, %i
  // CHECK: plan.reshape %arg0, %arg2
  %9 = plan.reshape %x, %l
  // CHECK: plan.contiguous %arg0
  %10 = plan.contiguous %x
  // CHECK: plan.return{{$}}
  plan.return
}

// CHECK-LABEL: plan.func @values
plan.func @values(%i: i64 {plan.name = "i"}, %f: f64 {plan.name = "f"}, %l: !plan.list {plan.name = "l"}, %s: !plan.string {plan.name = "s"}) {
  // CHECK: plan.mod %arg0, %arg0 : i64
  %0 = plan.mod %i, %i : i64
  // CHECK: plan.mod %arg1, %arg1 : f64
  %1 = plan.mod %f, %f : f64
  // CHECK: plan.pow %arg0, %arg0
  %2 = plan.pow %i, %i
  // CHECK: plan.dtype "bfloat16"
  %t = plan.dtype "bfloat16"
  // CHECK: plan.dtype_eq
  %3 = plan.dtype_eq %t, %t
  // CHECK: plan.dtype_size
  %4 = plan.dtype_size %t
  // CHECK: plan.dtype_is_float
  %5 = plan.dtype_is_float %t
  // CHECK: plan.string "mean"
  %mean = plan.string "mean"
  // CHECK: plan.string_eq
  %6 = plan.string_eq %s, %mean
  // CHECK: plan.list [%arg0, %arg0]
  %7 = plan.list [%i, %i]
  // CHECK: plan.list []
  %8 = plan.list []
  // CHECK: plan.list_len %arg2
  %9 = plan.list_len %l
  // CHECK: plan.list_get %arg2, %arg0
  %10 = plan.list_get %l, %i
  // CHECK: plan.list_set %arg2, %arg0, %arg0
  %11 = plan.list_set %l, %i, %i
  // CHECK: plan.list_append %arg2, %arg0
  %12 = plan.list_append %l, %i
  // CHECK: plan.list_concat %arg2, %arg2
  %13 = plan.list_concat %l, %l
  // CHECK: plan.list_slice %arg2 from %arg0 to %arg0
  %14 = plan.list_slice %l from %i to %i
  // CHECK: plan.list_eq %arg2, %arg2
  %15 = plan.list_eq %l, %l
  // CHECK: plan.broadcast_shapes %arg2, %arg2
  %16 = plan.broadcast_shapes %l, %l
  plan.return
}

// CHECK-LABEL: plan.func @effects
plan.func @effects(%x: !plan.tensor {plan.name = "x", plan.mut}, %i: i64 {plan.name = "i"}, %b: i1 {plan.name = "b"}, %t: !plan.dtype {plan.name = "t"}) -> !plan.tensor {
  // CHECK: plan.raise "expected rank 2, got {}"(%arg1) : i64
  plan.raise "expected rank 2, got {}" (%i) : i64
  // CHECK: plan.raise "no {{[{][{]}}braces{{[}][}]}}"
  plan.raise "no {{braces}}"
  // CHECK: plan.call @"ns::queries"(%arg0, %arg1) : (!plan.tensor, i64) -> !plan.tensor
  %r = plan.call @"ns::queries"(%x, %i) : (!plan.tensor, i64) -> !plan.tensor
  // CHECK: plan.launch "k" [T = %arg3 : !plan.dtype, N at_least %arg1 : i64, B = %arg2 : i1] (%{{.*}} : !plan.tensor, mut %arg0 : !plan.tensor, %arg1 : i64) grid (%arg1, %arg1)
  plan.launch "k" [T = %t : !plan.dtype, N at_least %i : i64, B = %b : i1] (%r : !plan.tensor, mut %x : !plan.tensor, %i : i64) grid (%i, %i)
  // CHECK: plan.launch "persistent" (mut %arg0 : !plan.tensor){{$}}
  plan.launch "persistent" (mut %x : !plan.tensor)
  plan.return %r : !plan.tensor
}
