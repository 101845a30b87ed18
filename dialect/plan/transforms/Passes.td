// Passes over the plan dialect.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_DIALECT_PLAN_TRANSFORMS_PASSES_TD
#define KPKG_DIALECT_PLAN_TRANSFORMS_PASSES_TD
include "mlir/Pass/PassBase.td"

def PlanShapeSlice : Pass<"plan-shape-slice", "::kpkg::plan_ir::FuncOp"> {
  let summary = "keeps of a plan what decides shapes and errors";
  let description = [{
    Removes launches, then everything that only fed them. What is left raises where the plan raises and returns tensors of the same shape
    and dtype; it asks for no more of the arguments than that, so that it can be evaluated on symbolic shapes with few guards.
    Expects `canonicalize` and `cse` after it.
  }];
  let statistics = [Statistic<"launches", "removed-launches", "Launches removed">];
}
#endif
