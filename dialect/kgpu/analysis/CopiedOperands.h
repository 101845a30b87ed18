// Determines the tiles that the producer warp copies into ring buffers: operands, and rows that arithmetic reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/StreamedDots.h"
#include <vector>

namespace kpkg::kgpu {

/// A tile that is copied ahead, and the slot that receives it.
struct Member {
  StreamedOperand operand; ///< the operand of the first product that reads the tile, or a row that arithmetic reads
  SharedType slot;         ///< the type of one slot, in the layout that this product reads
  bool isRow() const { return slot.getShape().size() == 1; }
};

/// Operands that are copied together: either one operand that several products read, or the operands of one product.
/// The latter's loads stand in one block and have no other reader.
struct Stream {
  llvm::SmallVector<tile::DotOp, 2> dots; ///< in program order
  llvm::SmallVector<Member, 2> members;
  unsigned ring = 0; ///< the index of its ring buffer
  AwaitOp await;     ///< holds the number of this use of the ring

  /// Returns the first product, or an earlier load of a row that its computed operand depends on.
  mlir::Operation *first() const;
  /// The ops in the loads' block that are or contain the first op and the last product. Full slots are awaited before
  /// the first and released after the last.
  mlir::Operation *begin() { return anchorOf(first()); }
  mlir::Operation *end() { return anchorOf(dots.back()); }

private:
  mlir::Operation *anchorOf(mlir::Operation *op) const {
    return members.front().operand.load->getBlock()->findAncestorOpInBlock(*op);
  }
};

/// Returns whether both streams copy equal boxes of the same views, so that they can share a ring buffer.
bool haveOneRing(const Stream &left, const Stream &right);

/// Returns the position of a row of elements, if a tensor map can describe it.
std::optional<TensorView> rowPlace(tile::LoadOp load);

/// Returns the ops of `block` that compute where the tile is, in program order.
llvm::SmallVector<mlir::Operation *> addressOf(const Member &member, mlir::Block &block);

/// Returns the streams of a kernel's products, in program order, with the rows that arithmetic reads beside them.
std::vector<Stream> streamsOf(tile::KernelOp kernel, llvm::MutableArrayRef<StreamedDot> products);

} // namespace kpkg::kgpu
