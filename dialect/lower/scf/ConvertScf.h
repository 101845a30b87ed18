// Loops and branches with regions become branches between blocks, for every target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace kpkg::lower {

/// Converts every scf.for, scf.if and scf.while of the module; all other ops stay as they are.
mlir::LogicalResult convertScf(mlir::ModuleOp module);

} // namespace kpkg::lower
