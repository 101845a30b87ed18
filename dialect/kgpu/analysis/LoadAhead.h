// Finds loads of a loop whose addresses depend only on counters, so that they can be issued for another iteration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/CarriedCounters.h"
#include "dialect/kgpu/ir/Remarks.h"

namespace kpkg::kgpu {
/// Returns whether a load of a loop may go through a ring in shared memory, as far as facts tell. The tile must be
/// large enough, and facts must permit vectors of four bytes.
bool isForRing(tile::LoadOp load);
/// Returns why the elements of a load whose tile has a layout cannot go through a ring.
WhyNot whyNotFetched(tile::LoadOp load);
/// Returns the type of a slot for the elements that the threads of a CTA fetch in place of a load.
SharedType slotFor(tile::LoadOp load, unsigned threads);

/// Returns the ops of the loop that compute the address of `access`, in order. Returns nothing if they depend on more
/// than the loop's counter, `counters` and values from outside, or if `mayRepeat` is false for one of them.
std::optional<llvm::SmallVector<mlir::Operation *>> addressAhead(mlir::scf::ForOp loop, mlir::Operation *access,
                                                                 const CarriedCounters *counters,
                                                                 llvm::function_ref<bool(mlir::Operation *)> mayRepeat);

/// Returns the loop's counter `iterations` after `counter`.
mlir::Value counterAfter(mlir::OpBuilder &builder, mlir::scf::ForOp loop, mlir::Value counter, int64_t iterations);
/// Returns the slot that follows `slot` in a ring of `slots`.
mlir::Value slotAfter(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value slot, int64_t slots);

struct LoadAhead {
  mlir::scf::ForOp loop;
  tile::LoadOp load;
  llvm::SmallVector<mlir::Operation *> address; ///< ops of the loop that compute the load's address, in order

  /// Returns a reason if the load depends on more than the loop's counter, `counters` and values from outside. The same
  /// holds if it reads memory that may change.
  static ResultOrWhy<LoadAhead> find(mlir::scf::ForOp loop, tile::LoadOp load,
                                     const CarriedCounters *counters = nullptr);
  /// Returns whether the address depends on the loop's counter.
  bool followsCounter() const;
  /// Clones the address computation for the loop counter `counter`.
  mlir::IRMapping addressAt(mlir::OpBuilder &builder, mlir::Value counter) const;
  /// Clones the load for the loop counter `counter`.
  mlir::Value loadAt(mlir::OpBuilder &builder, mlir::Value counter) const;
};
} // namespace kpkg::kgpu
