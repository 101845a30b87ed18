// Computes the position of this thread, and its contribution to the coordinates of its registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/nvvm/ThreadBits.h"
#include "mlir/IR/Builders.h"
#include <optional>
#include <vector>

namespace kpkg::lower::nvvm {

/// Values at the start of the kernel's entry, created on first use, so that they dominate all uses.
class ThreadPlace {
public:
  /// Starts at `entry`. A kernel block has `threadsPerBlock` threads, fewer than a warp if a CTA runs several blocks.
  void start(mlir::Block *entry, mlir::Location loc, unsigned threadsPerBlock);

  /// Returns the i32 index of the thread in its CTA.
  mlir::Value thread();
  /// Returns the thread's numbers in the numbering of layouts. `layout` determines which are needed.
  ThreadBits bits(const layout::Layout &layout);

  /// Returns the i32 contribution of this thread's position to coordinate `dim`.
  mlir::Value coordinate(const layout::Layout &layout, unsigned dim);
  /// Returns the i32 coordinate of register `reg` of this thread, at `builder`.
  mlir::Value coordinate(mlir::ImplicitLocOpBuilder &builder, const layout::Layout &layout, unsigned reg, unsigned dim);
  /// Returns whether a coordinate is the sum of the thread's and the register's contributions, rather than their XOR.
  static bool isSum(const layout::Layout &layout, unsigned dim);
  /// Returns the contribution of register `reg`: its coordinate in thread 0.
  static int64_t ofRegister(const layout::Layout &layout, unsigned reg, unsigned dim) {
    return layout.coordinates({reg, 0, 0, 0})[dim];
  }

  /// Returns an i1: whether this thread is the first of those that hold the same elements. Null when there are no
  /// replicas.
  mlir::Value isFirstReplica(const layout::Layout &layout);
  /// As isFirstReplica, among the threads of the CTA.
  mlir::Value isFirstInCta(const layout::Layout &layout);

private:
  mlir::Value isFirst(const layout::Layout &layout, unsigned blockMask);
  mlir::ImplicitLocOpBuilder atEntry();
  mlir::Value &remember(mlir::Value &slot, mlir::Value value);
  mlir::Value lane();
  mlir::Value warp();
  mlir::Value block();

  mlir::Block *entry = nullptr;
  mlir::Operation *last = nullptr; ///< The latest op that was placed at the entry.
  std::optional<mlir::Location> loc;
  unsigned threadsPerBlock = 32;
  mlir::Value threadValue, laneValue, warpValue, blockValue;
  std::vector<std::pair<std::pair<layout::Layout, unsigned>, mlir::Value>> coordinates;
};

} // namespace kpkg::lower::nvvm
