// Tests lists of tensors: their ops, shape slices and bytecode.
// RUN: kpkg-opt %s --verify-roundtrip | FileCheck %s
// RUN: kpkg-opt %s --plan-shape-slice --canonicalize | FileCheck %s --check-prefix=SLICE
// RUN: kpkg-plan %s --listing --op=ns::step --call="tensors[float32[4], float64[2,3]], tensors[float32[4], float64[2,3]], 1" --call="tensors[], tensors[], 0" | FileCheck %s --check-prefix=STEP
// RUN: kpkg-plan %s --op=ns::made --call="float32[4], 1" --call="float32[4], 3" | FileCheck %s --check-prefix=MADE

// CHECK-LABEL: plan.func @"ns::step"(%arg0: !plan.tensors {plan.mut, plan.name = "params"}, %arg1: !plan.tensors {plan.name = "grads"}, %arg2: i64 {plan.name = "from"})
// CHECK: plan.tensors_len %arg0
// CHECK: plan.tensors_get %arg0, %{{.*}}
// CHECK: plan.tensors_get %arg1, %{{.*}}

// What only launches need is removed.
// SLICE-LABEL: plan.func @"ns::step"
// SLICE-NEXT:  plan.return

// STEP:      ns::step(mut %0 params: List of Tensor, %1 grads: List of Tensor, %2 from: Int) -> nothing
// STEP:      tensors_len %0
// STEP:      tensors_get %0, %
// STEP:      ns::step(tensors[float32[4], float64[2,3]], tensors[float32[4], float64[2,3]], 1)
// STEP-NEXT: launch k(mut params[1]: float64[2, 3], grads[1]: float64[2, 3]) grid 1x1x1
// STEP:      ns::step(tensors[], tensors[], 0)
// STEP-NOT:  launch
plan.func @"ns::step"(%params: !plan.tensors {plan.name = "params", plan.mut}, %grads: !plan.tensors {plan.name = "grads"}, %from: i64 {plan.name = "from"})
    attributes {schema = "step(Tensor(a!)[] params, Tensor[] grads, int from) -> ()"} {
  %c1 = arith.constant 1 : i64
  %count = plan.tensors_len %params
  scf.for %i = %from to %count step %c1 : i64 {
    %p = plan.tensors_get %params, %i
    %g = plan.tensors_get %grads, %i
    plan.launch "k" (mut %p : !plan.tensor, %g : !plan.tensor) grid (%c1)
  }
  plan.return
}

// CHECK-LABEL: plan.func @"ns::made"
// CHECK: plan.tensors [%arg0, %arg0]
// CHECK: plan.tensors_append %{{.*}}, %arg0
// CHECK: plan.tensors_concat %{{.*}}, %{{.*}}
// CHECK: plan.tensors_slice %{{.*}} from %arg1 to %{{.*}}
// SLICE-LABEL: plan.func @"ns::made"
// SLICE:       plan.tensors_slice

// MADE:      ns::made(float32[4], 1)
// MADE-NEXT: launch k(mut result{{.*}}: float32[4], x: float32[4]) grid 4x1x1
// MADE:      ns::made(float32[4], 3)
// MADE-NEXT: launch k(mut result{{.*}}: float32[4], x: float32[4]) grid 2x1x1
plan.func @"ns::made"(%x: !plan.tensor {plan.name = "x"}, %from: i64 {plan.name = "from"}) -> !plan.tensor
    attributes {schema = "made(Tensor x, int from) -> Tensor"} {
  %two = plan.tensors [%x, %x]
  %three = plan.tensors_append %two, %x
  %five = plan.tensors_concat %two, %three
  %last = arith.constant 9223372036854775807 : i64
  %part = plan.tensors_slice %five from %from to %last
  %count = plan.tensors_len %part
  %minus = arith.constant -1 : i64
  %end = plan.tensors_get %part, %minus
  %y = plan.empty_like %end
  plan.launch "k" (mut %y : !plan.tensor, %end : !plan.tensor) grid (%count)
  plan.return %y : !plan.tensor
}
