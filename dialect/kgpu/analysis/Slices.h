// Finds the ops of a block that values depend on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Block.h"
#include "llvm/ADT/SetVector.h"

namespace kpkg::kgpu {
/// Returns the ops of `block` that these values depend on, also through regions of other ops, in order of dependence.
/// Ops for which `is` returns false are left out, with those that only they depend on.
llvm::SetVector<mlir::Operation *> sliceIn(
    mlir::Block &block, mlir::ValueRange values,
    llvm::function_ref<bool(mlir::Operation *)> is = [](mlir::Operation *) { return true; });
} // namespace kpkg::kgpu
