// Matrix products whose operands can be copied to shared memory by themselves while earlier ones are multiplied.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/async/TensorViews.h"
#include <vector>

namespace kpkg::kgpu {

/// An operand of a product that tensor maps can bring: a load or a gather by windows, perhaps transposed, from an
/// argument of the kernel.
struct StreamedOperand {
  mlir::Operation *load = nullptr;
  TensorView place;
  unsigned panelDim = 0;     ///< the dimension of the product's operand that has stride 1
  bool isTransposed = false; ///< whether the product reads the transpose of what is loaded
};

struct StreamedDot {
  tile::DotOp dot;
  std::optional<StreamedOperand> lhs; ///< nothing: the product reads it from registers, or where warpgroups share it
  std::optional<StreamedOperand> rhs; ///< always there
  mlir::Value shared; ///< or null: a tile that the kernel computes, and the product reads the transpose of

  /// Whether warpgroups load the left operand from shared memory before they multiply: there products read words only
  /// along what is summed over.
  bool goesThroughRegisters() const;
};

/// Where the tile that `op` gives lies; nothing when tensor maps do not bring it, such as from where the kernel writes,
/// or with other values than zeros for what is outside.
std::optional<TensorView> streamedPlace(mlir::Operation *op);

/// The products of a kernel, if warpgroups can compute all of them from shared memory on this chip; nothing when one of
/// them needs another way: element types, extents, views that tensor maps cannot describe, or loads inside of branches.
std::vector<StreamedDot> streamedDots(tile::KernelOp kernel, const TargetModel &target);

/// Of an earlier one of `products`, the operand whose copy begins with all that this product's right operand reads:
/// fewer columns of the same rows. Null where there is none.
const StreamedOperand *wholeOf(const StreamedDot &product, llvm::ArrayRef<StreamedDot> products);

/// Whether the value is a constant, or a tile of constants, that are all 0.
bool isZero(mlir::Value value);

/// Warpgroups that share the tiles of these products; 0 when no number of them suits. Two have halves of products of
/// more columns than one has registers for, and then both compute what these are made from. Where products are
/// `together`, their columns are those of all that read computed operands.
unsigned consumersFor(llvm::ArrayRef<StreamedDot> dots, bool together = false);

/// Whether the product reads a left operand that the kernel computes, and each warpgroup has in registers.
bool readsComputed(const StreamedDot &dot);
/// Whether a warpgroup of its own can make what others read as computed left operands: it has the sums of all other
/// products, of 64 rows.
bool canBeMade(llvm::ArrayRef<StreamedDot> dots);

} // namespace kpkg::kgpu
