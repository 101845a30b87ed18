// Loops of roles, whether they count or take numbers, as far as both carry values from turn to turn.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace kpkg::kgpu {

/// A loop that runs one block again and again. `arguments` of the block are what it carries: at first `inits`, then
/// `yielded`, behind it `results`.
struct CarryingLoop {
  mlir::Operation *op = nullptr;
  mlir::Block *body = nullptr;
  mlir::ValueRange arguments, inits, yielded, results;

  explicit operator bool() const { return op != nullptr; }
};

/// False for other ops, and for loops with code between two turns that does more than to ask whether there is another
/// one.
CarryingLoop carryingLoop(mlir::Operation *op);

/// The loop with more values that it carries, behind those that it has: at first `inits`, then what `yields` makes of
/// them at the end of its body.
mlir::scf::ForOp carryAlso(
    mlir::scf::ForOp loop, mlir::ValueRange inits,
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::OpBuilder &, llvm::ArrayRef<mlir::BlockArgument>)> yields);
/// The loop with one value more; it yields what it got until yieldLast() says otherwise.
mlir::scf::ForOp carryAlso(mlir::scf::ForOp loop, mlir::Value init);
/// Makes `value` the last one that a turn of the loop yields.
void yieldLast(mlir::scf::ForOp loop, mlir::Value value);

/// A loop that ends with the first number that is not below `count`.
struct TakingLoop {
  mlir::Value first, count; ///< the number of the first turn, and of how many
  mlir::Value number, next; ///< that of a turn, and of the one behind it
};
std::optional<TakingLoop> takingLoop(mlir::scf::WhileOp loop);

} // namespace kpkg::kgpu
