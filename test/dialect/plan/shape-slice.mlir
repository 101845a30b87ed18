// Tests shape slices of plans: errors and results remain.
// RUN: kpkg-opt %s --plan-shape-slice --canonicalize | FileCheck %s

// Only launches use %n, so the branch and the ops that feed it are removed.
// CHECK-LABEL: plan.func @branch_for_launches
// CHECK-NEXT: %[[OUT:.*]] = plan.empty_like %arg0
// CHECK-NEXT: plan.return %[[OUT]]
plan.func @branch_for_launches(%x: !plan.tensor {plan.name = "x"}) -> !plan.tensor {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %out = plan.empty_like %x
  %n = plan.dim %x, %c0
  %some = arith.cmpi sgt, %n, %c1 : i64
  scf.if %some {
    %t = plan.contiguous %x
    plan.launch "a" (%t : !plan.tensor, mut %out : !plan.tensor) grid (%n)
  } else {
    plan.launch "b" (%x : !plan.tensor, mut %out : !plan.tensor) grid (%n)
  }
  plan.return %out : !plan.tensor
}

// A temporary tensor is no result.
// CHECK-LABEL: plan.func @temporary
// CHECK-NEXT: %[[OUT:.*]] = plan.empty_like %arg0
// CHECK-NEXT: plan.return %[[OUT]]
plan.func @temporary(%x: !plan.tensor {plan.name = "x"}) -> !plan.tensor {
  %out = plan.empty_like %x
  %partial = plan.empty_like %x
  plan.launch "a" (%x : !plan.tensor, mut %partial : !plan.tensor)
  plan.launch "b" (%partial : !plan.tensor, mut %out : !plan.tensor)
  plan.return %out : !plan.tensor
}

// CHECK-LABEL: plan.func @error
// CHECK: scf.if
// CHECK: plan.raise
plan.func @error(%x: !plan.tensor {plan.name = "x"}) -> !plan.tensor {
  %c2 = arith.constant 2 : i64
  %rank = plan.rank %x
  %wrong = arith.cmpi ne, %rank, %c2 : i64
  scf.if %wrong {
    plan.raise "rank {}" (%rank) : i64
  }
  %out = plan.empty_like %x
  plan.launch "a" (%x : !plan.tensor, mut %out : !plan.tensor)
  plan.return %out : !plan.tensor
}

// An expand to a wrong shape is an error of the caller, although only a launch reads the view.
// CHECK-LABEL: plan.func @expand
// CHECK: %[[E:.*]] = plan.expand %arg1
// CHECK-NEXT: plan.check %[[E]]
// CHECK-NOT: plan.drop
// CHECK: plan.return
plan.func @expand(%x: !plan.tensor {plan.name = "x"}, %c: !plan.tensor {plan.name = "c"}) -> !plan.tensor {
  %c0 = arith.constant 0 : i64
  %shape = plan.shape %x
  %e = plan.expand %c, %shape
  %row = plan.drop %e [0] at (%c0)
  %out = plan.empty_like %x
  plan.launch "a" (%x : !plan.tensor, %row : !plan.tensor, mut %out : !plan.tensor)
  plan.return %out : !plan.tensor
}
