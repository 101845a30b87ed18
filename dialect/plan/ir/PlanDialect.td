// Defines the plan dialect: the host side of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_PLAN_DIALECT_TD
#define KPKG_PLAN_DIALECT_TD
include "mlir/IR/OpBase.td"

def Plan_Dialect : Dialect {
  let name = "plan";
  let cppNamespace = "::kpkg::plan_ir";
  let summary = "Describes the host side of an op: shapes, checks, views, choice of kernel, launches";
  let description = [{
    A `plan.func` reads the shapes, strides, dtypes and scalars of its arguments. It raises errors, makes views,
    allocates results and launches kernels, but never reads an element of a tensor. Scalars are i64 (`Int`), f64 (every
    float) and i1, computed with `arith` and `math`. Control flow is `scf.if`, `scf.for` and `scf.while`. The function
    is encoded as bytecode (compiler/pack/EncodePlan.h) that runtime/plan evaluates. Both agree on these rules:

    * `i64` arithmetic that overflows, and a division by zero, raise.
    * A dimension operand may be negative and then counts from the end. A dimension outside the rank raises.
    * A tensor is a view: a buffer, an offset, a shape and strides. `fold`, `reshape` and `contiguous` return a view
      where strides allow it, else a copy, which `explain` shows. The copy behaves like the view: a launch that writes
      to it also changes the source tensor, and later writes to the source are visible in the copy.
    * A null tensor (`plan.none`, an absent optional argument) may be tested, returned and passed to launches. Every
      other use raises.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
}
#endif
