// Finds the values that depend on some other values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace kpkg::kgpu {
/// Returns all values inside `root` that may differ where one of `sources` does: values computed from them, and
/// results of branches that they decide. Values carried by loops whose bounds depend on them are included, and so are
/// loads from memory that the kernel writes.
llvm::DenseSet<mlir::Value> dependents(mlir::Operation *root, llvm::ArrayRef<mlir::Value> sources);
} // namespace kpkg::kgpu
