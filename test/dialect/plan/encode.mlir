// Tests control flow, calls and pass-through scalars in bytecode.
// RUN: kpkg-plan %s --listing --op=if | FileCheck %s --check-prefix=IF
// RUN: kpkg-plan %s --listing --op=for --call="4, float32[1]" --call="0, float32[1]" | FileCheck %s --check-prefix=FOR
// RUN: kpkg-plan %s --listing --op=while --call="10, float32[1]" | FileCheck %s --check-prefix=WHILE
// RUN: kpkg-plan %s --listing --op=caller --call="float32[4], 0.5, 3" --call="float32[4], nan, 7" | FileCheck %s --check-prefix=CALL
// RUN: kpkg-plan %s --op=swap --call="3, float32[9]" | FileCheck %s --check-prefix=SWAP
// RUN: kpkg-plan %s --op=endless --call="float32[1]" | FileCheck %s --check-prefix=FUEL

// IF: if(%0 c: Bool, %1 x: Tensor) -> t
// IF-NEXT: branch_unless %0 @4
// IF-NEXT: %3 = empty_like %1
// IF-NEXT: %2 = move %3
// IF-NEXT: jump @5
// IF-NEXT: %2 = move %1
// IF-NEXT: ret %2
plan.func @if(%c: i1 {plan.name = "c"}, %x: !plan.tensor {plan.name = "x"}) -> !plan.tensor {
  %r = scf.if %c -> !plan.tensor {
    %e = plan.empty_like %x
    scf.yield %e : !plan.tensor
  } else {
    scf.yield %x : !plan.tensor
  }
  plan.return %r : !plan.tensor
}

// FOR: loop_for %{{[0-9]+}}, %0, %{{[0-9]+}} @[[END:[0-9]+]]
// FOR: loop_end @{{[0-9]+}}
// FOR-NEXT: [[END]] {{.*}}list_len
// FOR: for(4, float32[1])
// FOR-NEXT: launch k(mut x: float32[1], 6, 4) grid 1x1x1
// FOR: for(0, float32[1])
// FOR-NEXT: launch k(mut x: float32[1], 0, 0) grid 1x1x1
plan.func @for(%n: i64 {plan.name = "n"}, %x: !plan.tensor {plan.name = "x", plan.mut}) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %empty = plan.list []
  %sum, %list = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0, %l = %empty) -> (i64, !plan.list) : i64 {
    %next = arith.addi %s, %i : i64
    %longer = plan.list_append %l, %i
    scf.yield %next, %longer : i64, !plan.list
  }
  %len = plan.list_len %list
  plan.launch "k" (mut %x : !plan.tensor, %sum : i64, %len : i64) grid (%c1)
  plan.return
}

// WHILE: loop_while @[[END:[0-9]+]]
// WHILE: break_unless
// WHILE: loop_end
// WHILE-NEXT: [[END]] launch
// WHILE: launch k(mut x: float32[1], 16) grid 1x1x1
plan.func @while(%n: i64 {plan.name = "n"}, %x: !plan.tensor {plan.name = "x", plan.mut}) {
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %power = scf.while (%p = %c1) : (i64) -> i64 {
    %small = arith.cmpi slt, %p, %n : i64
    scf.condition(%small) %p : i64
  } do {
  ^bb0(%p: i64):
    %double = arith.muli %p, %c2 : i64
    scf.yield %double : i64
  }
  plan.launch "k" (mut %x : !plan.tensor, %power : i64) grid (%c1)
  plan.return
}

// %s only reaches launches, also through the call; %n is read by the plan.
// CALL: caller(%0 x: Tensor, %1 s: Float as passed, %2 n: Int) -> t
// CALL: call %{{[0-9]+}}, %1, %{{[0-9]+}} "callee"
// CALL: callee(mut %0 y: Tensor, %1 s: Float as passed, %2 n: Int as passed) -> nothing
// CALL: caller(float32[4], 0.5, 3)
// CALL-NEXT: launch k(mut result0: float32[4], s: as passed, 6) grid 4x1x1
// CALL: caller(float32[4], nan, 7)
// CALL-NEXT: launch k(mut result0: float32[4], s: as passed, 14) grid 4x1x1
plan.func @callee(%y: !plan.tensor {plan.name = "y", plan.mut}, %s: f64 {plan.name = "s"}, %n: i64 {plan.name = "n"}) {
  %extent = plan.numel %y
  plan.launch "k" (mut %y : !plan.tensor, %s : f64, %n : i64) grid (%extent)
  plan.return
}
plan.func @caller(%x: !plan.tensor {plan.name = "x"}, %s: f64 {plan.name = "s"}, %n: i64 {plan.name = "n"}) -> !plan.tensor {
  %twice = arith.addi %n, %n : i64
  %y = plan.empty_like %x
  plan.call @callee(%y, %s, %twice) : (!plan.tensor, f64, i64) -> ()
  plan.return %y : !plan.tensor
}

// Fibonacci: the carried values are exchanged.
// SWAP: launch k(mut x: float32[9], 3, 2) grid 1x1x1
plan.func @swap(%n: i64 {plan.name = "n"}, %x: !plan.tensor {plan.name = "x", plan.mut}) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c3 = arith.constant 3 : i64
  %a, %b = scf.for %i = %c0 to %n step %c1 iter_args(%p = %c2, %q = %c3) -> (i64, i64) : i64 {
    scf.yield %q, %p : i64, i64
  }
  plan.launch "k" (mut %x : !plan.tensor, %a : i64, %b : i64) grid (%c1)
  plan.return
}

// FUEL: error in argument -1: more than 1048576 instructions
plan.func @endless(%x: !plan.tensor {plan.name = "x"}) -> !plan.tensor {
  %true = arith.constant true
  scf.while : () -> () {
    scf.condition(%true)
  } do {
    scf.yield
  }
  plan.return %x : !plan.tensor
}
