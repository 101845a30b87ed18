// What the copying role of a kernel with products puts into rings: operands of products, and rows that arithmetic
// reads.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_KGPU_ASYNC_COPIED_OPERANDS_H
#define KPKG_KGPU_ASYNC_COPIED_OPERANDS_H

#include "dialect/kgpu/async/StreamedDots.h"
#include <vector>

namespace kpkg::kgpu {

/// What is copied ahead, and where it is put.
struct Member {
  StreamedOperand operand; ///< of the first product that reads it; or a row that arithmetic reads
  SharedType slot;         ///< one slot, as that product reads it
  bool isRow() const { return slot.getShape().size() == 1; }
};

/// Operands that are copied together: those of one product whose loads stand in one block and serve nothing else, or
/// one that serves several.
struct Stream {
  llvm::SmallVector<tile::DotOp, 2> dots; ///< in program order
  llvm::SmallVector<Member, 2> members;
  unsigned ring = 0; ///< which of the rings it goes through
  AwaitOp await;     ///< knows its number among the uses of that ring

  /// The ops of the loads' block that are or contain the first and the last product: filled slots are awaited before
  /// and released after them.
  mlir::Operation *begin() { return anchorOf(dots.front()); }
  mlir::Operation *end() { return anchorOf(dots.back()); }

private:
  mlir::Operation *anchorOf(tile::DotOp dot) {
    return members.front().operand.load->getBlock()->findAncestorOpInBlock(*dot.getOperation());
  }
};

/// Whether both copy the same boxes of the same views: they can take turns in a ring.
bool haveOneRing(const Stream &left, const Stream &right);

/// Where a row of elements lies, if tensor maps reach it.
std::optional<TensorView> rowPlace(tile::LoadOp load);

/// What is copied for the products of a kernel, in program order, and rows beside it.
std::vector<Stream> streamsOf(tile::KernelOp kernel, llvm::MutableArrayRef<StreamedDot> products);

} // namespace kpkg::kgpu
#endif
