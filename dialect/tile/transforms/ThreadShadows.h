// Gives the shared memory of kernels at thread level shadow memory, and counts their barriers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/tile/ir/TileDialect.h"
#include "dialect/tile/transforms/AddShadowChecks.h"
#include "mlir/IR/Builders.h"

namespace kpkg::tile {

/// The shadows of an argument or of shared memory, null where a check is not wanted.
struct Shadow {
  mlir::Value written, accesses;
};

/// The low bits of a cell, which have the state of its element.
constexpr int32_t stateBits = 3;

/// Describes the threads of a block in access cells of shared memory, i64. Counts the barriers that they have passed,
/// because accesses before and after a barrier do not conflict.
class ThreadCells {
public:
  ThreadCells() = default;
  /// Adds counts of barriers to a kernel at thread level: those of the block and of each warp, in shared memory.
  explicit ThreadCells(KernelOp kernel);

  /// Returns this thread's cell now, without a state.
  mlir::Value ownCell(mlir::OpBuilder &builder, mlir::Location loc) const;
  /// Returns the thread in a cell.
  static mlir::Value threadIn(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value cell);
  /// Returns whether no barrier lies between the accesses of two cells. Threads of one warp need a barrier of the warp,
  /// others one of the block.
  static mlir::Value areConcurrent(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value a, mlir::Value b);

private:
  mlir::Value counts; ///< i64 [1 + warps]
};

/// Adds shadows of 0 for the shared memory that the kernel's first block allocates. Those of accesses are i64.
llvm::DenseMap<mlir::Value, Shadow> addSharedShadows(KernelOp kernel, ShadowChecks checks);

} // namespace kpkg::tile
