// Tests plans that have no bytecode.
// RUN: not kpkg-plan %s --op=recursive 2>&1 | FileCheck %s --check-prefix=RECURSIVE
// RUN: not kpkg-plan %s --op=unsigned 2>&1 | FileCheck %s --check-prefix=UNSIGNED
// RUN: not kpkg-plan %s --op=narrow 2>&1 | FileCheck %s --check-prefix=NARROW
// RUN: not kpkg-plan %s --op=unknown 2>&1 | FileCheck %s --check-prefix=UNKNOWN

plan.func @recursive(%x: i64 {plan.name = "x"}) {
  plan.call @other(%x) : (i64) -> ()
  plan.return
}
plan.func @other(%x: i64 {plan.name = "x"}) {
  // RECURSIVE: encode-errors.mlir:[[@LINE+1]]:{{.*}}error: `recursive` calls itself, directly or through others; ops cannot recur
  plan.call @recursive(%x) : (i64) -> ()
  plan.return
}
plan.func @unsigned(%x: i64 {plan.name = "x"}) {
  // UNSIGNED: encode-errors.mlir:[[@LINE+1]]:{{.*}}error: {{.*}}unsigned comparison, which the host side of an op does not have
  %0 = arith.cmpi ult, %x, %x : i64
  plan.return
}
plan.func @narrow(%x: i64 {plan.name = "x"}) {
  // NARROW: encode-errors.mlir:[[@LINE+1]]:{{.*}}error: {{.*}}has type 'i32', which the host side of an op cannot hold
  %0 = arith.trunci %x : i64 to i32
  plan.return
}
plan.func @unknown(%x: f64 {plan.name = "x"}) {
  // UNKNOWN: encode-errors.mlir:[[@LINE+1]]:{{.*}}error: {{.*}}`math.cbrt` has no instruction in plan bytecode
  %0 = math.cbrt %x : f64
  plan.return
}
