// Where this thread is, and which coordinates that adds to those of its registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/lower/nvvm/ThreadBits.h"
#include "mlir/IR/Builders.h"
#include <optional>
#include <vector>

namespace kpkg::lower::nvvm {

/// Values at the front of the kernel's entry: made there on first use, they dominate everything else.
class ThreadPlace {
public:
  /// A kernel block has `threadsPerBlock` threads: fewer than a warp where a CTA runs several blocks.
  void start(mlir::Block *entry, mlir::Location loc, unsigned threadsPerBlock);

  /// i32: number of the thread in its CTA.
  mlir::Value thread();
  /// The thread's numbers as layouts count them. `layout` says which are needed.
  ThreadBits bits(const layout::Layout &layout);

  /// i32: what the place of this thread contributes to coordinate `dim`.
  mlir::Value coordinate(const layout::Layout &layout, unsigned dim);
  /// i32, at `builder`: the coordinate of register `reg` of this thread.
  mlir::Value coordinate(mlir::ImplicitLocOpBuilder &builder, const layout::Layout &layout, unsigned reg, unsigned dim);
  /// Whether a coordinate is the sum of the thread's part and the register's, rather than their XOR.
  static bool isSum(const layout::Layout &layout, unsigned dim);
  /// What register `reg` contributes: its coordinate in thread 0.
  static int64_t ofRegister(const layout::Layout &layout, unsigned reg, unsigned dim) {
    return layout.coordinates({reg, 0, 0, 0})[dim];
  }

  /// i1: this thread is the first of those that hold the same elements; null when no other does.
  mlir::Value isFirstReplica(const layout::Layout &layout);
  /// The same among the threads of its CTA.
  mlir::Value isFirstInCta(const layout::Layout &layout);

private:
  mlir::Value isFirst(const layout::Layout &layout, unsigned blockMask);
  mlir::ImplicitLocOpBuilder atEntry();
  mlir::Value &remember(mlir::Value &slot, mlir::Value value);
  mlir::Value lane();
  mlir::Value warp();
  mlir::Value block();

  mlir::Block *entry = nullptr;
  mlir::Operation *last = nullptr; ///< the latest op that was put at the entry
  std::optional<mlir::Location> loc;
  unsigned threadsPerBlock = 32;
  mlir::Value threadValue, laneValue, warpValue, blockValue;
  std::vector<std::pair<std::pair<layout::Layout, unsigned>, mlir::Value>> coordinates;
};

} // namespace kpkg::lower::nvvm
