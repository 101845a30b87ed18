// Converts structured loops and branches to branches between blocks, for every target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace kpkg::lower {

/// Converts every scf.for, scf.if and scf.while of the module. All other ops stay unchanged.
mlir::LogicalResult convertScf(mlir::ModuleOp module);

} // namespace kpkg::lower
