// The part of a plan that decides shapes and errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/plan/ir/Plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace kpkg::plan_ir {

/// A module with the shape slices of `function` and of all that it calls, simplified. Null, with diagnostics, if a pass
/// fails.
mlir::OwningOpRef<mlir::ModuleOp> makeShapeSlice(FuncOp function);

} // namespace kpkg::plan_ir
