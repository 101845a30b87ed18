// Declares the passes that run on generated IR before anything depends on a target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace kpkg::compiler {

/// Canonicalises kernels of the tile dialect or ops of the plan dialect, and merges equal operations. Null for null,
/// and after an error in the context's diagnostics.
mlir::OwningOpRef<mlir::ModuleOp> simplified(mlir::OwningOpRef<mlir::ModuleOp> module);

} // namespace kpkg::compiler
