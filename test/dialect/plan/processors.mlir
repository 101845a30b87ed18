// RUN: kpkg-plan %s --op=ns::spread --listing --call="float32[1000]" | FileCheck %s
// RUN: kpkg-plan %s --op=ns::spread --call="float32[1000]" --processors=132 | FileCheck %s --check-prefix=GPU
// RUN: kpkg-plan %s --op=ns::spread --shapes --listing | FileCheck %s --check-prefix=SHAPES
// RUN: not kpkg-plan %s --op=ns::leaks --shapes 2>&1 | FileCheck %s --check-prefix=LEAKS

// CHECK: processors
// CHECK: grid 64x1x1
// GPU: grid 528x1x1
// SHAPES-NOT: processors
plan.func @"ns::spread"(%x: !plan.tensor {plan.name = "x"}) -> !plan.tensor attributes {schema = "spread(Tensor x) -> Tensor"} {
  %c4 = arith.constant 4 : i64
  %p = plan.processors
  %n = arith.muli %p, %c4 : i64
  %y = plan.empty_like %x
  plan.launch "k" (%x : !plan.tensor, mut %y : !plan.tensor) grid (%n)
  plan.return %y : !plan.tensor
}

// LEAKS: error: the shape of a result, or an error that is raised, depends on `processors()`
plan.func @"ns::leaks"(%x: !plan.tensor {plan.name = "x"}) -> !plan.tensor attributes {schema = "leaks(Tensor x) -> Tensor"} {
  %p = plan.processors
  %shape = plan.list [%p]
  %type = plan.dtype_of %x
  %y = plan.empty %shape, %type
  plan.return %y : !plan.tensor
}
