// The plan dialect: the host side of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PLAN_DIALECT_TD
#define KPKG_PLAN_DIALECT_TD
include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::kpkg::plan_ir";
  let summary = "The host side of an op: shapes, checks, views, choice of kernel, launches";
  let description = [{
    A `plan.func` looks at the shapes, strides, dtypes and scalars of its arguments, raises errors, makes views, allocates
    results and launches kernels. It never sees an element of a tensor. Scalars are i64 (`Int`), f64 (every float) and i1,
    computed with `arith` and `math`; control flow is `scf.if`, `scf.for` and `scf.while`. It is encoded as bytecode
    (compiler/pack/EncodePlan.h) that runtime/plan evaluates; the two agree on what every op here means:

    * `i64` arithmetic that overflows, and a division by zero, raise.
    * A dimension given as an operand may be negative and then counts from the end; outside of the rank it raises.
    * A tensor is a view: a buffer, an offset, a shape and strides. `fold`, `reshape` and `contiguous` give a view where strides
      allow it and else a copy, which `explain` shows. The copy behaves as the view would: what a launch writes to it
      arrives in the tensor that it came from, and what is written there later is seen in the copy.
    * A null tensor (`plan.none`, an absent optional argument) may be tested, returned and launched with; every other use raises.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
}
#endif
