// Finds accesses of different threads to one element of shared memory that no barrier separates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One agent stands for all threads of a CTA without roles, so the order of their accesses never changes a result. The
// layouts tell which thread makes each access. Accesses of roles are ordered by rings instead, and are not checked.
#pragma once
#include "dialect/sim/async/Machine.h"

namespace kpkg::sim {
/// The accesses of one execution of an op.
class RaceCheck {
public:
  enum class Kind : uint8_t { Read, Write, Update };
  /// `value` is the tile or scalar that moves.
  RaceCheck(mlir::Operation &op, mlir::Value value, Kind kind);
  /// Records the access to an element of the tile. The address may be null.
  void access(const char *address, llvm::ArrayRef<int64_t> coordinates);
  /// Records an access to the element with this row-major number.
  void access(const char *address, int64_t number);
  /// Returns an error after a race.
  llvm::Error error(const Frame &frame) const;

private:
  mlir::Operation &op;
  Kind kind;
  bool isChecked;
  std::optional<layout::Layout> layout; ///< of a tile
  llvm::ArrayRef<int64_t> shape;
  int64_t execution;
  mlir::Operation *other = nullptr; ///< the op of the first race
};

/// Adds handlers of reads and updates through views, which check for races.
void addCheckedHandlers(HandlerTable &table);
} // namespace kpkg::sim
