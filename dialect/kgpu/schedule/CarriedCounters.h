// Numbers that a loop carries and counts on by itself, so that they are known for iterations to come.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace kpkg::kgpu {

/// Those of what a loop carries whose next values follow from themselves, as kgpu-merge-loops makes them: indices of
/// loops that have become one.
struct CarriedCounters {
  mlir::scf::ForOp loop;
  llvm::SmallVector<unsigned> numbers;       ///< of the carried values
  llvm::SmallVector<mlir::Operation *> step; ///< ops of the loop that make the next ones, in order

  static CarriedCounters of(mlir::scf::ForOp loop);
  bool contain(mlir::BlockArgument argument) const;
  /// Where the loop begins.
  llvm::SmallVector<mlir::Value> first() const;
  /// What follows on `now`.
  llvm::SmallVector<mlir::Value> next(mlir::OpBuilder &builder, mlir::ValueRange now) const;
  /// Maps them to `now`.
  void map(mlir::IRMapping &mapping, mlir::ValueRange now) const;
};

} // namespace kpkg::kgpu
