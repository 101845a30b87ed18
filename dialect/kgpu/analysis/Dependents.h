// Finds the values that depend on some other values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kpkg::kgpu {
/// Returns all values inside `root` that may differ where one of `sources` does: values computed from them, and
/// results of branches that they decide. Values carried by loops whose bounds depend on them are included, and so are
/// loads from memory that the kernel writes.
llvm::DenseSet<mlir::Value> dependents(mlir::Operation *root, llvm::ArrayRef<mlir::Value> sources);
/// Returns the values that may differ between the CTAs of a cluster.
llvm::DenseSet<mlir::Value> differingInCluster(tile::KernelOp kernel);
/// Returns whether a bound or the step of the loop is among these values.
bool hasBoundIn(mlir::scf::ForOp loop, const llvm::DenseSet<mlir::Value> &values);
} // namespace kpkg::kgpu
