// Helpers for loops of roles that carry values: scf.for, and scf.while of the dynamic tile scheduler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kpkg::kgpu {

/// A loop with one body block. `arguments` of the block are the carried values: `inits` in the first iteration,
/// `yielded` in later ones, and `results` after the loop.
struct CarryingLoop {
  mlir::Operation *op = nullptr;
  mlir::Block *body = nullptr;
  mlir::ValueRange arguments, inits, yielded, results;

  explicit operator bool() const { return op != nullptr; }
};

/// Returns false for ops that are no loops, and for scf.while loops whose region `before` does more than compare.
CarryingLoop carryingLoop(mlir::Operation *op);

/// Adds carried values to the loop, after the present ones, and returns the new loop. They start with `inits`;
/// `yields` computes their next values at the end of the body.
mlir::scf::ForOp carryAlso(
    mlir::scf::ForOp loop, mlir::ValueRange inits,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, llvm::ArrayRef<mlir::BlockArgument>)> yields);
/// Adds one carried value, which is yielded unchanged until yieldLast() replaces it.
mlir::scf::ForOp carryAlso(mlir::scf::ForOp loop, mlir::Value init);
/// Makes `value` the last operand of the loop's yield.
void yieldLast(mlir::scf::ForOp loop, mlir::Value value);

/// A loop of the dynamic tile scheduler: it ends at the first tile number that is not below `count`.
struct TakingLoop {
  mlir::Value first, count; ///< the first tile number, and the number of tiles
  mlir::Value number, next; ///< the tile number of an iteration, and that of the next one
};
std::optional<TakingLoop> takingLoop(mlir::scf::WhileOp loop);

} // namespace kpkg::kgpu
