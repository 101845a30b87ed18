// Finds matrix products whose operands the TMA can copy to shared memory ahead, while earlier products run.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "dialect/kgpu/analysis/TensorViews.h"
#include "dialect/kgpu/ir/Constants.h"
#include <vector>

namespace kpkg::kgpu {

/// An operand of a product that the TMA can copy: a load or im2col gather from a kernel argument, perhaps transposed.
struct StreamedOperand {
  mlir::Operation *load = nullptr;
  TensorView place;
  unsigned panelDim = 0;     ///< the dimension of the product's operand that has stride 1
  bool isTransposed = false; ///< whether the product reads the transpose of the loaded tile
};

struct StreamedDot {
  tile::DotOp dot;
  std::optional<StreamedOperand> lhs; ///< empty if the product reads it from registers or as a shared tile
  std::optional<StreamedOperand> rhs; ///< always present
  mlir::Value shared;                 ///< null, or a computed tile of which the product reads the transpose

  /// Returns whether warpgroups load the left operand from shared memory to registers before they multiply. Products
  /// of f32 read operands in shared memory only along K.
  bool goesThroughRegisters() const;
};

/// The op that keeps warpgroups from computing a kernel's products, and the reason.
struct StreamRefusal {
  mlir::Operation *op = nullptr;
  std::string why;
};

/// Returns the position of the tile that `op` loads. Returns a reason if the TMA cannot load it, for example from a
/// mutable view, or with a fill value other than zero.
ResultOrWhy<TensorView> streamedPlace(mlir::Operation *op);

/// Returns the products of a kernel, if wgmma can compute all of them from shared memory on this chip. Returns nothing
/// if one does not suit: its element types, extents, views that no tensor map describes, or loads inside of branches.
/// `refusal` receives that op and the reason.
std::vector<StreamedDot> streamedDots(tile::KernelOp kernel, const TargetModel &target,
                                      StreamRefusal *refusal = nullptr);

/// The products of a kernel with a target, as an analysis for passes.
struct StreamedDots {
  explicit StreamedDots(tile::KernelOp kernel) : products(streamedDots(kernel, targetOf(kernel), &refusal)) {}

  StreamRefusal refusal;
  std::vector<StreamedDot> products;
};

/// Returns an operand of an earlier product in `products` whose first columns are this product's right operand.
/// Returns null if there is none.
const StreamedOperand *wholeOf(const StreamedDot &product, llvm::ArrayRef<StreamedDot> products);

/// Returns the number of consumer warpgroups for the tiles of these products, or 0 if no number suits. If a product
/// has more columns than one warpgroup has registers for, two warpgroups have half of its columns each. Both then
/// compute the products that it depends on. If `together`, columns of all products that read computed operands are
/// added up.
unsigned consumersFor(llvm::ArrayRef<StreamedDot> dots, bool together = false);
/// Returns why no number of warpgroups suits the products, of which there must be some.
StreamRefusal whyNoConsumers(llvm::ArrayRef<StreamedDot> dots);

/// Returns whether the kernel computes the product's left operand, and each warpgroup holds it in registers.
bool readsComputed(const StreamedDot &dot);
/// Returns whether a producer warpgroup can compute the left operands for the consumers. It would hold the
/// accumulators of all other products, which must have 64 rows.
bool suitsProducer(llvm::ArrayRef<StreamedDot> dots);

} // namespace kpkg::kgpu
