// Loads of a loop whose addresses follow from its counter, so that they can be issued for another iteration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/schedule/CarriedCounters.h"

namespace kpkg::kgpu {
/// Whether a ring in shared memory may take a load of a loop, as far as facts say: the tile is worth a place of its
/// own, and vectors of four bytes are promised.
bool isForRing(tile::LoadOp load);
/// The same once there are layouts.
bool canFetch(tile::LoadOp load);
/// The place for what the threads of a CTA fetch instead of a load.
SharedType slotFor(tile::LoadOp load, unsigned threads);

struct LoadAhead {
  mlir::scf::ForOp loop;
  tile::LoadOp load;
  llvm::SmallVector<mlir::Operation *> address; ///< ops of the loop that make its address, in order

  /// Nothing when the load needs more than the loop's counter, `counters` and what is known outside, or reads what may
  /// change.
  static std::optional<LoadAhead> find(mlir::scf::ForOp loop, tile::LoadOp load,
                                       const CarriedCounters *counters = nullptr);
  /// Whether its address is another one in each iteration.
  bool followsCounter() const;
  /// Clones the address as it is when the loop's counter is `counter`.
  mlir::IRMapping addressAt(mlir::OpBuilder &builder, mlir::Value counter) const;
  /// The same for counters of which `mapping` says what they are.
  mlir::IRMapping addressAt(mlir::OpBuilder &builder, mlir::IRMapping mapping) const;
  /// The load as it is when the loop's counter is `counter`.
  mlir::Value loadAt(mlir::OpBuilder &builder, mlir::Value counter) const;
};
} // namespace kpkg::kgpu
