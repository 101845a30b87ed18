// Builds the ring buffers of channels, and numbers the uses that roles make of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/RolePartition.h"
#include "mlir/IR/PatternMatch.h"

namespace kpkg::kgpu {

/// The ring buffer of a channel, or of a part of its tile.
struct ChannelRing {
  mlir::Value ring;
  llvm::SmallVector<SharedType, 2> slotTypes;
  llvm::SmallVector<mlir::Value, 2> buffers; ///< of all slots: one for each slot type

  /// Builds the slot of a use.
  mlir::Value slotOf(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value use, unsigned member = 0) const;
};

/// Builds the rings of a planned channel: one for each part.
llvm::SmallVector<ChannelRing, 2> makeRings(mlir::OpBuilder &builder, mlir::Location loc, const Channel &channel);

/// The code of one use: from the op that contains `first` to the one that contains `last`, in the block of `in`.
struct UseSpan {
  mlir::Operation *in, *first, *last;

  UseSpan(mlir::Operation *op) : in(op), first(op), last(op) {}
  UseSpan(mlir::Operation *in, mlir::Operation *first, mlir::Operation *last) : in(in), first(first), last(last) {}

  mlir::Operation *begin() const { return in->getBlock()->findAncestorOpInBlock(*first); }
  mlir::Operation *end() const { return in->getBlock()->findAncestorOpInBlock(*last); }
};

/// Numbers the uses of a ring by a role 0, 1, 2, ..., through all of its loops, which then carry the number. Returns
/// the number of each span. The next number is computed behind a span or, if `isEarly`, before it. Reports an error at
/// a span that does not run in every iteration.
mlir::FailureOr<llvm::SmallVector<mlir::Value>> numberUses(mlir::IRRewriter &rewriter, mlir::Block &role,
                                                           llvm::ArrayRef<UseSpan> spans, bool isEarly = false);

} // namespace kpkg::kgpu
