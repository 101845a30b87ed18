// Tests scalars on the host: Python's rules for // and %, errors instead of overflow, NaN.
// RUN: kpkg-plan %s --op=int --call="float32[1], 7, 2" --call="float32[1], -7, 2" --call="float32[1], 7, -2" --call="float32[1], 7, 0" \
// RUN:   --call="float32[1], 9223372036854775807, 2" --call="float32[1], -9223372036854775808, -1" | FileCheck %s --check-prefix=INT
// RUN: kpkg-plan %s --op=float --call="float32[1], 7.0, 2.0" --call="float32[1], nan, 2.0" --call="float32[1], 1e30, 2.0" | FileCheck %s --check-prefix=FLOAT
// RUN: kpkg-plan %s --op=bool --call="float32[1], True, False" --call="float32[1], True, True" | FileCheck %s --check-prefix=BOOL

// a // b, a % b, ceildiv(a, b), a * b, max, min, a ** 2
// INT: int(float32[1], 7, 2)
// INT-NEXT: launch k(mut x: float32[1], 3, 1, 4, 14, 7, 2, 49)
// INT: int(float32[1], -7, 2)
// INT-NEXT: launch k(mut x: float32[1], -4, 1, -3, -14, 2, -7, 49)
// INT: int(float32[1], 7, -2)
// INT-NEXT: launch k(mut x: float32[1], -4, -1, -3, -14, 7, -2, 49)
// INT: int(float32[1], 7, 0)
// INT-NEXT: error in argument -1: 7 // 0: division by zero
// INT: int(float32[1], 9223372036854775807, 2)
// INT-NEXT: error in argument -1: 9223372036854775807 * 2 does not fit Int, which has 64 bits
// INT: int(float32[1], -9223372036854775808, -1)
// INT-NEXT: error in argument -1: -9223372036854775808 // -1 does not fit Int, which has 64 bits
plan.func @int(%x: !plan.tensor {plan.name = "x", plan.mut}, %a: i64 {plan.name = "a"}, %b: i64 {plan.name = "b"}) {
  %c1 = arith.constant 1 : i64
  %c2 = arith.constant 2 : i64
  %0 = arith.floordivsi %a, %b : i64
  %1 = plan.mod %a, %b : i64
  %2 = arith.ceildivsi %a, %b : i64
  %3 = arith.muli %a, %b : i64
  %4 = arith.maxsi %a, %b : i64
  %5 = arith.minsi %a, %b : i64
  %6 = plan.pow %a, %c2
  plan.launch "k" (mut %x : !plan.tensor, %0 : i64, %1 : i64, %2 : i64, %3 : i64, %4 : i64, %5 : i64, %6 : i64) grid (%c1)
  plan.return
}

// FLOAT: float(float32[1], 7.0, 2.0)
// FLOAT-NEXT: launch k(mut x: float32[1], 3.5, 21, 7, False, True, 7)
// FLOAT: float(float32[1], nan, 2.0)
// FLOAT-NEXT: error in argument -1: nan does not fit an Int
// FLOAT: float(float32[1], 1e30, 2.0)
// FLOAT-NEXT: error in argument -1: 1e+30 does not fit an Int
plan.func @float(%x: !plan.tensor {plan.name = "x", plan.mut}, %a: f64 {plan.name = "a"}, %b: f64 {plan.name = "b"}) {
  %c1 = arith.constant 1 : i64
  %0 = arith.divf %a, %b : f64
  %1 = math.fma %a, %b, %a : f64
  %2 = arith.maximumf %a, %b : f64
  %3 = arith.cmpf olt, %a, %b : f64
  %4 = arith.cmpf une, %a, %b : f64
  %5 = arith.fptosi %a : f64 to i64
  plan.launch "k" (mut %x : !plan.tensor, %0 : f64, %1 : f64, %2 : f64, %3 : i1, %4 : i1, %5 : i64) grid (%c1)
  plan.return
}

// a & b, a | b, a == b, a != b, Int(a), Float(a)
// BOOL: launch k(mut x: float32[1], False, True, False, True, 1, 1)
// BOOL: launch k(mut x: float32[1], True, True, True, False, 1, 1)
plan.func @bool(%x: !plan.tensor {plan.name = "x", plan.mut}, %a: i1 {plan.name = "a"}, %b: i1 {plan.name = "b"}) {
  %c1 = arith.constant 1 : i64
  %0 = arith.andi %a, %b : i1
  %1 = arith.ori %a, %b : i1
  %2 = arith.cmpi eq, %a, %b : i1
  %3 = arith.cmpi ne, %a, %b : i1
  %4 = arith.extui %a : i1 to i64
  %5 = arith.uitofp %a : i1 to f64
  plan.launch "k" (mut %x : !plan.tensor, %0 : i1, %1 : i1, %2 : i1, %3 : i1, %4 : i64, %5 : f64) grid (%c1)
  plan.return
}
