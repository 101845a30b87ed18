// Defines the passes over the plan dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_PLAN_TRANSFORMS_PASSES_TD
#define KPKG_DIALECT_PLAN_TRANSFORMS_PASSES_TD
include "mlir/Pass/PassBase.td"

def PlanAddShadows : Pass<"plan-add-shadows", "::kpkg::plan_ir::FuncOp"> {
  let summary = "gives the tensors of a plan shadow memory";
  let description = [{
    Appends to each launch the shadows of its tensor arguments, as `tile-add-shadow-checks` gives them to kernels: whether
    elements were written, and the cells of accesses. Allocates and clears the former with their tensors, and the latter
    before each launch. A launch of the kernel `fill`, which clears them, is left as it is.
  }];
  let options = [Option<"written", "written", "bool", /*default=*/"false", "Add shadows of written elements">,
                 Option<"accesses", "accesses", "bool", /*default=*/"false", "Add cells of accesses">,
                 Option<"fill", "fill", "std::string", /*default=*/"", "The kernel that fills shadows">];
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect"];
}

def PlanShapeSlice : Pass<"plan-shape-slice", "::kpkg::plan_ir::FuncOp"> {
  let summary = "slices a plan down to the ops that determine result shapes and errors";
  let description = [{
    Erases launches, so that the ops that only computed their operands become dead. The slice raises where the plan
    raises, and returns tensors of the same shape and dtype. It requires no further properties of the arguments, so it
    can be evaluated on symbolic shapes with few guards. For views whose errors depend on an argument, it inserts
    `plan.check_dim` or `plan.check`. Run `canonicalize` and `cse` after it.
  }];
  let statistics = [Statistic<"launches", "removed-launches", "Launches removed">];
}
#endif
