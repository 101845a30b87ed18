// Tests the plan of softmax over any dimension: the steps that a call resolves to.
// RUN: kpkg-opt %s --verify-roundtrip -o /dev/null
// RUN: kpkg-plan %s --listing | FileCheck %s --check-prefix=LIST
// RUN: kpkg-plan %s --call="float32[4, 1000], -1" --call="float32[2, 3, 5], 1" --call="float32[2, 3, 5], 0" \
// RUN:   --call="float32[3, 4]@[1, 3], 1" --call="float32[3, 4, 2]@[1, 3, 12], 1" --call="float32[0, 4], 0" --call="float32[], -1" \
// RUN:   --call="float32[2, 3], 2" --call="float32[4, 9000], 1" --call="None, 0" --call="float32[2], 0.5" --call="float32[2]" | FileCheck %s
// RUN: kpkg-opt %s --plan-shape-slice --canonicalize | FileCheck %s --check-prefix=SLICE
// RUN: kpkg-plan %s --shapes --call="float32[4, 5], 1" --call="float32[], -1" --call="float32[4, 5], 2" | FileCheck %s --check-prefix=SHAPES

plan.func @"kpkg::softmax"(%input: !plan.tensor {plan.name = "input"}, %dim: i64 {plan.name = "dim"}) -> !plan.tensor
    attributes {schema = "softmax(Tensor input, int dim=-1) -> Tensor"} {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %c64 = arith.constant 64 : i64
  %c8192 = arith.constant 8192 : i64
  %out = plan.empty_like %input
  %x = plan.fold %input, %dim
  %y = plan.fold %out, %dim
  %t = plan.dtype_of %x
  %outer = plan.dim %x, %c0
  %extent = plan.dim %x, %c1
  %inner = plan.dim %x, %c2
  %columns = arith.cmpi sgt, %inner, %c1 : i64
  scf.if %columns {
    %grid = arith.ceildivsi %inner, %c64 : i64
    plan.launch "softmax_columns" [T = %t : !plan.dtype] (%x : !plan.tensor, mut %y : !plan.tensor) grid (%grid, %outer)
  } else {
    %x2 = plan.drop %x [2] at (%c0)
    %y2 = plan.drop %y [2] at (%c0)
    %long = arith.cmpi sgt, %extent, %c8192 : i64
    scf.if %long {
      plan.launch "softmax_long_rows" [T = %t : !plan.dtype] (%x2 : !plan.tensor, mut %y2 : !plan.tensor) grid (%outer)
    } else {
      plan.launch "softmax_rows" [T = %t : !plan.dtype, COLS at_least %extent : i64] (%x2 : !plan.tensor, mut %y2 : !plan.tensor) grid (%outer)
    }
  }
  plan.return %out : !plan.tensor
}

// LIST: kpkg::softmax(%0 input: Tensor, %1 dim: Int) -> t
// LIST: empty_like %0
// LIST: fold %0, %1
// LIST: cmp_int {{.*}} gt
// LIST: branch_unless
// LIST: launch "softmax_columns" [T = %{{[0-9]+}}] (%{{[0-9]+}}, mut %{{[0-9]+}}) grid (%{{[0-9]+}}, %{{[0-9]+}})
// LIST: launch "softmax_rows" [T = %{{[0-9]+}}, COLS >= %{{[0-9]+}}]

// CHECK-LABEL: kpkg::softmax(float32[4, 1000], -1)
// CHECK-NEXT: launch softmax_rows[T = float32, COLS >= 1000](input: float32[4, 1000], mut result1: float32[4, 1000]) grid 4x1x1
// CHECK-NEXT: output 0: result1: float32[4, 1000]

// CHECK-LABEL: kpkg::softmax(float32[2, 3, 5], 1)
// CHECK-NEXT: launch softmax_columns[T = float32](input: float32[2, 3, 5], mut result1: float32[2, 3, 5]) grid 1x2x1

// CHECK-LABEL: kpkg::softmax(float32[2, 3, 5], 0)
// CHECK-NEXT: launch softmax_columns[T = float32](input: float32[1, 2, 15], mut result1: float32[1, 2, 15]) grid 1x1x1

// A transposed matrix is a view with its own strides.
// CHECK-LABEL: kpkg::softmax(float32[3, 4]@[1, 3], 1)
// CHECK-NEXT: launch softmax_rows[T = float32, COLS >= 4](input: float32[3, 4] strides [1, 3], mut result1: float32[3, 4]) grid 3x1x1

// No view: inner and outer dimensions merge, but their strides do not allow it here.
// CHECK-LABEL: kpkg::softmax(float32[3, 4, 2]@[1, 3, 12], 1)
// CHECK-NEXT: launch softmax_columns[T = float32](input: float32[3, 4, 2] strides [1, 3, 12], mut result1: float32[3, 4, 2]) grid 1x3x1

// CHECK-LABEL: kpkg::softmax(float32[0, 4], 0)
// CHECK-NEXT: launch softmax_columns
// CHECK-LABEL: kpkg::softmax(float32[], -1)
// CHECK-NEXT: launch softmax_rows[T = float32, COLS >= 1](input: float32[1, 1], mut result1: float32[1, 1]) grid 1x1x1
// CHECK-NEXT: output 0: result1: float32[]

// CHECK-LABEL: kpkg::softmax(float32[2, 3], 2)
// CHECK-NEXT: error in argument 0: `input` (float32[2, 3]): dimension 2 is out of range, expected -2 to 1
// CHECK-LABEL: kpkg::softmax(float32[4, 9000], 1)
// CHECK-NEXT: launch softmax_long_rows
// CHECK-LABEL: kpkg::softmax(None, 0)
// CHECK-NEXT: error in argument -1: empty_like of None
// CHECK-LABEL: kpkg::softmax(float32[2], 0.5)
// CHECK-NEXT: error in argument 1: argument `dim` is Float, expected Int
// CHECK-LABEL: kpkg::softmax(float32[2])
// CHECK-NEXT: error in argument -1: 1 arguments, expected 2

// SLICE-LABEL: plan.func @"kpkg::softmax"
// SLICE-NEXT: %[[OUT:.*]] = plan.empty_like %arg0
// SLICE-NEXT: %[[X:.*]] = plan.fold %arg0, %arg1
// SLICE-NEXT: plan.check %[[X]]
// SLICE-NEXT: %[[Y:.*]] = plan.fold %[[OUT]], %arg1
// SLICE-NEXT: plan.check %[[Y]]
// SLICE-NEXT: plan.return %[[OUT]]

// SHAPES: kpkg::softmax(float32[4, 5], 1)
// SHAPES-NEXT: output 0: result0: float32[4, 5]
// SHAPES: kpkg::softmax(float32[], -1)
// SHAPES-NEXT: output 0: result0: float32[]
// SHAPES: error in argument 0: `input` (float32[4, 5]): dimension 2 is out of range, expected -2 to 1
