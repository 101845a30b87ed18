// Tests the plan of layer norm: trailing shapes as a list, checked by a loop, and nullable weights.
// RUN: kpkg-plan %s --call="float32[8, 16, 32], [16, 32], float32[16, 32]" --call="float32[8, 16, 32], [32], None" \
// RUN:   --call="float32[8, 16, 32], [31], None" --call="float32[8], [2, 8], None" --call="float32[2, 8], [], None" | FileCheck %s

// CHECK-LABEL: layer_norm(float32[8, 16, 32], [16, 32], float32[16, 32])
// CHECK-NEXT: launch layer_norm_rows[COLS >= 512, AFFINE = True](input: float32[8, 512], weight: float32[512], mut result2: float32[8, 512]) grid 8x1x1
// CHECK-NEXT: output 0: result2: float32[8, 16, 32]
// CHECK-LABEL: layer_norm(float32[8, 16, 32], [32], None)
// CHECK-NEXT: launch layer_norm_rows[COLS >= 32, AFFINE = False](input: float32[128, 32], None, mut result1: float32[128, 32]) grid 128x1x1
// CHECK-LABEL: layer_norm(float32[8, 16, 32], [31], None)
// CHECK-NEXT: error in argument 0: normalized_shape [31] does not end the shape of float32[8, 16, 32]
// CHECK-LABEL: layer_norm(float32[8], [2, 8], None)
// CHECK-NEXT: error in argument -1: normalized_shape [2, 8] is longer than the rank 1
// CHECK-LABEL: layer_norm(float32[2, 8], [], None)
// CHECK-NEXT: launch layer_norm_rows[COLS >= 1, AFFINE = False](input: float32[16, 1], None, mut result1: float32[16, 1]) grid 16x1x1
plan.func @layer_norm(%input: !plan.tensor {plan.name = "input"}, %shape: !plan.list {plan.name = "normalized_shape"},
                      %weight: !plan.tensor {plan.name = "weight"}) -> !plan.tensor {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %m1 = arith.constant -1 : i64
  %true = arith.constant true
  %end = arith.constant 9223372036854775807 : i64
  %rank = plan.rank %input
  %len = plan.list_len %shape
  %long = arith.cmpi sgt, %len, %rank : i64
  scf.if %long {
    plan.raise "normalized_shape {} is longer than the rank {}" (%shape, %rank) : !plan.list, i64
  }
  %outer = arith.subi %rank, %len : i64
  %all = plan.shape %input
  %tail = plan.list_slice %all from %outer to %end
  %same = plan.list_eq %tail, %shape
  %differ = arith.xori %same, %true : i1
  scf.if %differ {
    plan.raise "normalized_shape {} does not end the shape of {}" (%shape, %input) : !plan.list, !plan.tensor
  }
  %n = scf.for %i = %c0 to %len step %c1 iter_args(%p = %c1) -> i64 : i64 {
    %e = plan.list_get %shape, %i
    %q = arith.muli %p, %e : i64
    scf.yield %q : i64
  }
  %out = plan.empty_like %input
  %two = plan.list [%m1, %n]
  %x = plan.reshape %input, %two
  %y = plan.reshape %out, %two
  %rows = plan.dim %x, %c0
  %absent = plan.is_none %weight
  %affine = arith.xori %absent, %true : i1
  %w = scf.if %absent -> !plan.tensor {
    %none = plan.none
    scf.yield %none : !plan.tensor
  } else {
    %one = plan.list [%n]
    %flat = plan.reshape %weight, %one
    scf.yield %flat : !plan.tensor
  }
  plan.launch "layer_norm_rows" [COLS at_least %n : i64, AFFINE = %affine : i1] (%x : !plan.tensor, %w : !plan.tensor, mut %y : !plan.tensor) grid (%rows)
  plan.return %out : !plan.tensor
}
