// Finds ops of a kind inside another op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include "mlir/IR/Region.h"

namespace kpkg::kgpu {
/// Returns the ops of this kind inside `root`, so that a pass can replace them.
template <typename Op> llvm::SmallVector<Op> opsIn(mlir::Region &root) {
  llvm::SmallVector<Op> ops;
  root.walk([&](Op op) { ops.push_back(op); });
  return ops;
}
template <typename Op> llvm::SmallVector<Op> opsIn(mlir::Operation *root) {
  llvm::SmallVector<Op> ops;
  root->walk([&](Op op) { ops.push_back(op); });
  return ops;
}

/// Calls `visit` with each op of this kind inside `root`, which it may replace, until one call fails.
template <typename Op>
llvm::LogicalResult forEachOp(mlir::Operation *root, llvm::function_ref<llvm::LogicalResult(Op)> visit) {
  return llvm::failure(!llvm::all_of(opsIn<Op>(root), [&](Op op) { return llvm::succeeded(visit(op)); }));
}

/// Returns whether `root` is or contains an op for which `is` holds.
inline bool containsOp(mlir::Operation *root, llvm::function_ref<bool(mlir::Operation *)> is) {
  return root
      ->walk([&](mlir::Operation *op) { return is(op) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance(); })
      .wasInterrupted();
}

/// Returns whether `root` is or contains an op of one of these kinds.
template <typename... Ops> bool containsOp(mlir::Operation *root) {
  return containsOp(root, [](mlir::Operation *op) { return mlir::isa<Ops...>(op); });
}
} // namespace kpkg::kgpu
