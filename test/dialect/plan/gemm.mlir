// Tests the plans of gemm and batched gemm: transposes, the optional c, broadcasting, and errors that name the actual
// shapes.
// RUN: kpkg-plan %s --op="kpkg::gemm" --call="bfloat16[64, 32], bfloat16[32, 128], 1.0, 0.0, False, False, None" \
// RUN:   --call="bfloat16[32, 64], bfloat16[128, 32], 1.0, 0.5, True, True, bfloat16[128]" \
// RUN:   --call="bfloat16[64, 32], bfloat16[33, 128], 1.0, 0.0, False, False, None" \
// RUN:   --call="bfloat16[64, 32], float32[32, 128], 1.0, 0.0, False, False, None" \
// RUN:   --call="bfloat16[64, 32], bfloat16[32, 128], 1.0, 1.0, False, False, bfloat16[5]" \
// RUN:   --call="bfloat16[64], bfloat16[32, 128], 1.0, 1.0, False, False, None" | FileCheck %s
// RUN: kpkg-plan %s --op="kpkg::matmul" --call="float32[8, 1, 4, 5], float32[3, 5, 6]" --call="float32[4, 5], float32[2, 5, 6]@[0, 6, 1]" \
// RUN:   --call="float32[2, 4, 5], float32[3, 5, 6]" | FileCheck %s --check-prefix=BATCH
// RUN: kpkg-plan %s --op="kpkg::gemm" --shapes --listing | FileCheck %s --check-prefix=SLICE

// CHECK-LABEL: kpkg::gemm(bfloat16[64, 32], bfloat16[32, 128], 1.0, 0.0, False, False, None)
// CHECK-NEXT: launch gemm_tiles[T = bfloat16, HAS_C = False](a: bfloat16[64, 32], b: bfloat16[32, 128], None, mut result2: bfloat16[64, 128], alpha: as passed, beta: as passed) persistent
// CHECK-NEXT: output 0: result2: bfloat16[64, 128]
// CHECK-LABEL: kpkg::gemm(bfloat16[32, 64], bfloat16[128, 32]
// CHECK-NEXT: launch gemm_tiles[T = bfloat16, HAS_C = True](a: bfloat16[64, 32] strides [1, 64], b: bfloat16[32, 128] strides [1, 32], c: bfloat16[64, 128] strides [0, 1], mut result3: bfloat16[64, 128], alpha: as passed, beta: as passed) persistent
// CHECK: error in argument 1: gemm: a is bfloat16[64, 32], b is bfloat16[33, 128]: inner extents 32 and 33 differ
// CHECK: error in argument 1: gemm: b has dtype float32, expected bfloat16 as a; it is float32[32, 128]
// CHECK: error in argument 6: `c` (bfloat16[5]): cannot be expanded to [64, 128]: dimension 1 is 5
// CHECK: error in argument 0: `a` (bfloat16[64]): dimension 1 is out of range, expected -1 to 0

// The slice keeps checks and the result, but no launch.
// SLICE: kpkg::gemm(%0 a: Tensor, %1 b: Tensor, %2 alpha: Float as passed, %3 beta: Float as passed
// SLICE-NOT: launch
// SLICE: raise
// SLICE: empty
// SLICE-NOT: launch
plan.func @"kpkg::gemm"(%a: !plan.tensor {plan.name = "a"}, %b: !plan.tensor {plan.name = "b"}, %alpha: f64 {plan.name = "alpha"},
    %beta: f64 {plan.name = "beta"}, %ta: i1 {plan.name = "transpose_a"}, %tb: i1 {plan.name = "transpose_b"},
    %c: !plan.tensor {plan.name = "c"}) -> !plan.tensor attributes {schema = "gemm(...) -> Tensor"} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %true = arith.constant true
  %a2 = scf.if %ta -> !plan.tensor {
    %t = plan.transpose %a, %c0, %c1
    scf.yield %t : !plan.tensor
  } else {
    scf.yield %a : !plan.tensor
  }
  %b2 = scf.if %tb -> !plan.tensor {
    %t = plan.transpose %b, %c0, %c1
    scf.yield %t : !plan.tensor
  } else {
    scf.yield %b : !plan.tensor
  }
  %k = plan.dim %a2, %c1
  %kb = plan.dim %b2, %c0
  %same = arith.cmpi eq, %k, %kb : i64
  %dta = plan.dtype_of %a
  %differ = arith.xori %same, %true : i1
  scf.if %differ {
    %sa = plan.shape %a
    plan.raise "gemm: a is {}{}, b is {}: inner extents {} and {} differ" (%dta, %sa, %b2, %k, %kb) : !plan.dtype, !plan.list, !plan.tensor, i64, i64
  }
  %dtb = plan.dtype_of %b
  %same_t = plan.dtype_eq %dta, %dtb
  %differ_t = arith.xori %same_t, %true : i1
  scf.if %differ_t {
    plan.raise "gemm: b has dtype {}, expected {} as a; it is {}" (%dtb, %dta, %b) : !plan.dtype, !plan.dtype, !plan.tensor
  }
  %m = plan.dim %a2, %c0
  %n = plan.dim %b2, %c1
  %shape = plan.list [%m, %n]
  %out = plan.empty %shape, %dta
  %absent = plan.is_none %c
  %has = arith.xori %absent, %true : i1
  %c2 = scf.if %has -> !plan.tensor {
    %e = plan.expand %c, %shape
    scf.yield %e : !plan.tensor
  } else {
    scf.yield %c : !plan.tensor
  }
  plan.launch "gemm_tiles" [T = %dta : !plan.dtype, HAS_C = %has : i1] (%a2 : !plan.tensor, %b2 : !plan.tensor, %c2 : !plan.tensor, mut %out : !plan.tensor, %alpha : f64, %beta : f64)
  plan.return %out : !plan.tensor
}

// BATCH-LABEL: kpkg::matmul(float32[8, 1, 4, 5], float32[3, 5, 6])
// BATCH-NEXT: copy (a: float32[8, 3, 4, 5] strides [20, 0, 5, 1]) to (temporary1: float32[8, 3, 4, 5])
// BATCH-NEXT: copy (b: float32[8, 3, 5, 6] strides [0, 30, 6, 1]) to (temporary3: float32[8, 3, 5, 6])
// BATCH-NEXT: launch gemm_batched(temporary1: float32[24, 4, 5], temporary3: float32[24, 5, 6], mut result4: float32[24, 4, 6]) grid 24x1x1
// BATCH-NEXT: output 0: result4: float32[8, 3, 4, 6]
// BATCH-LABEL: kpkg::matmul(float32[4, 5], float32[2, 5, 6]@[0, 6, 1])
// BATCH-NEXT: launch gemm_batched(a: float32[2, 4, 5] strides [0, 5, 1], b: float32[2, 5, 6] strides [0, 6, 1], mut result2: float32[2, 4, 6]) grid 2x1x1
// BATCH-LABEL: kpkg::matmul(float32[2, 4, 5], float32[3, 5, 6])
// BATCH-NEXT: error in argument -1: shapes [2] and [3] do not broadcast: 2 and 3 in dimension 0
plan.func @"kpkg::matmul"(%a: !plan.tensor {plan.name = "a"}, %b: !plan.tensor {plan.name = "b"}) -> !plan.tensor {
  %c0 = arith.constant 0 : i64
  %m1 = arith.constant -1 : i64
  %m2 = arith.constant -2 : i64
  %sa = plan.shape %a
  %sb = plan.shape %b
  %ba = plan.list_slice %sa from %c0 to %m2
  %bb = plan.list_slice %sb from %c0 to %m2
  %batch = plan.broadcast_shapes %ba, %bb
  %m = plan.dim %a, %m2
  %k = plan.dim %a, %m1
  %n = plan.dim %b, %m1
  %mk = plan.list [%m, %k]
  %kn = plan.list [%k, %n]
  %mn = plan.list [%m, %n]
  %fa = plan.list_concat %batch, %mk
  %fb = plan.list_concat %batch, %kn
  %fd = plan.list_concat %batch, %mn
  %ea = plan.expand %a, %fa
  %eb = plan.expand %b, %fb
  %t = plan.dtype_of %a
  %out = plan.empty %fd, %t
  %a3 = plan.list [%m1, %m, %k]
  %b3 = plan.list [%m1, %k, %n]
  %d3 = plan.list [%m1, %m, %n]
  %ra = plan.reshape %ea, %a3
  %rb = plan.reshape %eb, %b3
  %rd = plan.reshape %out, %d3
  %blocks = plan.dim %rd, %c0
  plan.launch "gemm_batched" (%ra : !plan.tensor, %rb : !plan.tensor, mut %rd : !plan.tensor) grid (%blocks)
  plan.return %out : !plan.tensor
}
