// Numbers the ops of a kernel in program order, for live ranges.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace kpkg::kgpu {
/// Numbers ops so that the ops in an op's regions lie between its begin and its end.
struct Positions {
  explicit Positions(mlir::Block &block) { number(block); }

  llvm::DenseMap<mlir::Operation *, std::pair<int64_t, int64_t>> of; ///< begin and end
  int64_t next = 0;

private:
  void number(mlir::Block &block) {
    for (mlir::Operation &op : block) {
      int64_t begin = next++;
      for (mlir::Region &region : op.getRegions())
        llvm::for_each(region, [&](mlir::Block &inner) { number(inner); });
      of[&op] = {begin, next++};
    }
  }
};
} // namespace kpkg::kgpu
