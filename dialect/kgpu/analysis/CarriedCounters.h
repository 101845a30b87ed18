// Finds counters that a loop carries, so that their values in later iterations can be computed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace kpkg::kgpu {

/// The carried indices whose next values depend only on themselves. Such counters come from kgpu-merge-loops: they are
/// the indices of loops that were merged.
struct CarriedCounters {
  mlir::scf::ForOp loop;
  llvm::SmallVector<unsigned> numbers;       ///< indices among the carried values
  llvm::SmallVector<mlir::Operation *> step; ///< ops of the loop that compute the next values, in order

  static CarriedCounters of(mlir::scf::ForOp loop);
  bool contain(mlir::BlockArgument argument) const;
  /// Returns the counters of the first iteration.
  llvm::SmallVector<mlir::Value> first() const;
  /// Returns the counters of the iteration that follows the one with `now`.
  llvm::SmallVector<mlir::Value> next(mlir::OpBuilder &builder, mlir::ValueRange now) const;
  /// Maps the counters to `now`.
  void map(mlir::IRMapping &mapping, mlir::ValueRange now) const;
};

} // namespace kpkg::kgpu
