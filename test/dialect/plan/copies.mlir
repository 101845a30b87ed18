// Tests tensors whose strides do not allow a view: copies in, copies back, copies of results, and forbidden writes.
// RUN: kpkg-plan %s --op=read --call="float32[2, 3, 4], 1" --call="float32[2, 3, 4]@[1, 2, 6], 1" --call="float32[2, 3, 4]@[12, 4, 1], -1" \
// RUN:   --call="float32[4, 3, 2]@[1, 8, 4], 2" | FileCheck %s --check-prefix=READ
// RUN: kpkg-plan %s --op=write --call="float32[2, 3]" --call="float32[2, 3]@[1, 2]" --call="float32[2, 3]@[0, 1]" | FileCheck %s --check-prefix=WRITE
// RUN: kpkg-plan %s --op=refresh --call="float32[2, 3]@[1, 2]" | FileCheck %s --check-prefix=REFRESH
// RUN: kpkg-plan %s --op=scratch --call="float32[2, 3]" | FileCheck %s --check-prefix=SCRATCH
// RUN: kpkg-plan %s --op=return_argument --call="float32[2, 3]@[1, 2]" | FileCheck %s --check-prefix=RETURN
// RUN: kpkg-plan %s --op=return_twice --call="float32[6]" | FileCheck %s --check-prefix=TWICE
// RUN: kpkg-plan %s --op=read_only --call="float32[4]" | FileCheck %s --check-prefix=READONLY
// RUN: kpkg-plan %s --op=overlap --call="float32[4]" | FileCheck %s --check-prefix=OVERLAP
// RUN: kpkg-plan %s --op=halves --call="float32[4, 8]" | FileCheck %s --check-prefix=HALVES

// READ: read(float32[2, 3, 4], 1)
// READ-NEXT: launch k(x: float32[2, 3, 4], mut result1: float32[2, 3, 4]) grid 1x1x1
// READ: read(float32[2, 3, 4]@[1, 2, 6], 1)
// READ-NEXT: launch k(x: float32[2, 3, 4] strides [1, 2, 6]
// READ: read(float32[2, 3, 4]@[12, 4, 1], -1)
// READ-NEXT: launch k(x: float32[6, 4, 1], mut
// Dimensions 0 and 1 do not merge, so a copy comes first.
// READ: read(float32[4, 3, 2]@[1, 8, 4], 2)
// READ-NEXT: copy (x: float32[4, 3, 2] strides [1, 8, 4]) to (temporary1: float32[4, 3, 2])
// READ-NEXT: launch k(temporary1: float32[12, 2, 1], mut result2: float32[12, 2, 1]) grid 1x1x1
// READ-NEXT: output 0: result2: float32[4, 3, 2]
plan.func @read(%x: !plan.tensor {plan.name = "x"}, %dim: i64 {plan.name = "dim"}) -> !plan.tensor {
  %c1 = arith.constant 1 : i64
  %y = plan.empty_like %x
  %xf = plan.fold %x, %dim
  %yf = plan.fold %y, %dim
  plan.launch "k" (%xf : !plan.tensor, mut %yf : !plan.tensor) grid (%c1)
  plan.return %y : !plan.tensor
}

// A launch writes a copy, and the argument gets the result.
// WRITE: write(float32[2, 3])
// WRITE-NEXT: launch k(mut x: float32[6]) grid 1x1x1
// WRITE: write(float32[2, 3]@[1, 2])
// WRITE-NEXT: copy (x: float32[2, 3] strides [1, 2]) to (temporary1: float32[2, 3])
// WRITE-NEXT: launch k(mut temporary1: float32[6]) grid 1x1x1
// WRITE-NEXT: copy (temporary1: float32[2, 3]) to (x: float32[2, 3] strides [1, 2])
// WRITE: write(float32[2, 3]@[0, 1])
// WRITE-NEXT: error in argument 0: launch of k: it writes float32[2, 3] with strides [0, 1], whose elements share memory
plan.func @write(%x: !plan.tensor {plan.name = "x", plan.mut}) {
  %c1 = arith.constant 1 : i64
  %minus = arith.constant -1 : i64
  %shape = plan.list [%minus]
  %flat = plan.reshape %x, %shape
  plan.launch "k" (mut %flat : !plan.tensor) grid (%c1)
  plan.return
}

// The copy is repeated after its source was written.
// REFRESH: copy (x: float32[2, 3] strides [1, 2]) to (temporary[[T:[0-9]+]]: float32[2, 3])
// REFRESH-NEXT: launch first(temporary[[T]]: float32[2, 3])
// REFRESH-NEXT: launch again(temporary[[T]]: float32[2, 3])
// REFRESH-NEXT: launch writes(mut x: float32[2, 3] strides [1, 2])
// REFRESH-NEXT: copy (x: float32[2, 3] strides [1, 2]) to (temporary[[T]]: float32[2, 3])
// REFRESH-NEXT: launch after(temporary[[T]]: float32[2, 3])
plan.func @refresh(%x: !plan.tensor {plan.name = "x", plan.mut}) {
  %c1 = arith.constant 1 : i64
  %copy = plan.contiguous %x
  plan.launch "first" (%copy : !plan.tensor) grid (%c1)
  plan.launch "again" (%copy : !plan.tensor) grid (%c1)
  plan.launch "writes" (mut %x : !plan.tensor) grid (%c1)
  plan.launch "after" (%copy : !plan.tensor) grid (%c1)
  plan.return
}

// A tensor that was never written is not copied in.
// SCRATCH: launch k(mut temporary[[T:[0-9]+]]: float32[6]) grid 1x1x1
// SCRATCH-NEXT: copy (temporary[[T]]: float32[3, 2]) to (result1: float32[3, 2] strides [1, 3])
// SCRATCH-NEXT: output 0: result1: float32[2, 3]
plan.func @scratch(%x: !plan.tensor {plan.name = "x"}) -> !plan.tensor {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %minus = arith.constant -1 : i64
  %y = plan.empty_like %x
  %t = plan.transpose %y, %c0, %c1
  %shape = plan.list [%minus]
  %flat = plan.reshape %t, %shape
  plan.launch "k" (mut %flat : !plan.tensor) grid (%c1)
  plan.return %y : !plan.tensor
}

// RETURN: copy (x: float32[2, 3] strides [1, 2]) to (result1: float32[2, 3])
// RETURN-NEXT: output 0: result1: float32[2, 3]
plan.func @return_argument(%x: !plan.tensor {plan.name = "x"}) -> !plan.tensor {
  plan.return %x : !plan.tensor
}

// TWICE: launch k(mut result0: float32[6]) grid 1x1x1
// TWICE-NEXT: copy (result0: float32[6]) to (result1: float32[6])
// TWICE-NEXT: output 0: result0: float32[6]
// TWICE-NEXT: output 1: result1: float32[6]
// TWICE-NEXT: output 2: None
plan.func @return_twice(%x: !plan.tensor {plan.name = "x"}) -> (!plan.tensor, !plan.tensor, !plan.tensor) {
  %c1 = arith.constant 1 : i64
  %y = plan.empty_like %x
  plan.launch "k" (mut %y : !plan.tensor) grid (%c1)
  %none = plan.none
  plan.return %y, %y, %none : !plan.tensor, !plan.tensor, !plan.tensor
}

// READONLY: error in argument 0: launch of k: it writes `x`, which is not `mut`
plan.func @read_only(%x: !plan.tensor {plan.name = "x"}) {
  %c1 = arith.constant 1 : i64
  plan.launch "k" (mut %x : !plan.tensor) grid (%c1)
  plan.return
}

// OVERLAP: error in argument 0: launch of k: argument 1, which it writes, shares memory with argument 0
plan.func @overlap(%x: !plan.tensor {plan.name = "x", plan.mut}) {
  %c1 = arith.constant 1 : i64
  plan.launch "k" (%x : !plan.tensor, mut %x : !plan.tensor) grid (%c1)
  plan.return
}

// Left and right columns of one matrix share no element.
// HALVES: launch k(x: float32[4, 4] strides [8, 1], mut x: float32[4, 4] strides [8, 1] offset 4) grid 1x1x1
plan.func @halves(%x: !plan.tensor {plan.name = "x", plan.mut}) {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %c4 = arith.constant 4 : i64
  %end = arith.constant 9223372036854775807 : i64
  %left = plan.slice %x, %c1 from %c0 to %c4 step %c1
  %right = plan.slice %x, %c1 from %c4 to %end step %c1
  plan.launch "k" (%left : !plan.tensor, mut %right : !plan.tensor) grid (%c1)
  plan.return
}
