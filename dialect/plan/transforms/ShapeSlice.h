// Extracts the part of a plan that determines shapes and errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/plan/ir/Plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace kpkg::plan_ir {

/// Returns a module with the simplified shape slices of `function` and of its callees. Returns null, with diagnostics,
/// if a pass fails, or if a slice depends on `processors()`.
mlir::OwningOpRef<mlir::ModuleOp> makeShapeSlice(FuncOp function);

} // namespace kpkg::plan_ir
