// What is computed from some values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace kpkg::kgpu {
/// All values inside `root` that may differ where one of `sources` does: what is computed from them, what loops carry
/// that run more often for them, and what branches give that they decide; also what is read from memory that the kernel
/// writes.
llvm::DenseSet<mlir::Value> dependents(mlir::Operation *root, llvm::ArrayRef<mlir::Value> sources);
} // namespace kpkg::kgpu
