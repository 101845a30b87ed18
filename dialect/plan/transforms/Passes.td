// Defines the passes over the plan dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_PLAN_TRANSFORMS_PASSES_TD
#define KPKG_DIALECT_PLAN_TRANSFORMS_PASSES_TD
include "mlir/Pass/PassBase.td"

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
