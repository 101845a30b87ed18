// Chooses the instructions of matrix products, and defines layouts of their accumulators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/analysis/DotLayout.h"
#include "llvm/Support/MathExtras.h"

namespace kpkg::kgpu {
using layout::Layout;
using layout::Part;

namespace {
class Builder {
public:
  explicit Builder(llvm::ArrayRef<int64_t> shape) : shape(shape), covered(shape.size(), 1) {}

  /// Adds a bit of `part` along `dim`; returns false if the tile has no further elements.
  bool add(Part part, unsigned dim) {
    if (covered[dim] >= shape[dim])
      return false;
    Layout::Basis basis(shape.size(), 0);
    basis[dim] = covered[dim];
    fields.bases[static_cast<unsigned>(part)].push_back(basis);
    covered[dim] *= 2;
    return true;
  }
  void addFree(Part part) { fields.bases[static_cast<unsigned>(part)].push_back(Layout::Basis(shape.size(), 0)); }
  Layout finish() {
    for (auto [extent, size] : llvm::zip(shape, covered))
      fields.repeats.push_back(llvm::divideCeil(extent, size));
    return Layout::make(std::move(fields));
  }

private:
  llvm::ArrayRef<int64_t> shape;
  llvm::SmallVector<int64_t, 4> covered;
  Layout::Fields fields;
};
} // namespace

Layout dotAccumulator(llvm::ArrayRef<int64_t> shape, unsigned elementBytes, layout::Threads threads) {
  unsigned column = shape.size() - 1, row = shape.size() - 2;
  Builder builder(shape);
  for (unsigned bit = 0; bit < layout::bitsOf(std::max(1u, 16 / elementBytes)); ++bit)
    builder.add(Part::Register, column);
  for (unsigned bit = 0; bit < 2; ++bit)
    builder.add(Part::Register, row);
  for (unsigned bit = 0, count = layout::bitsOf(threads.lanes); bit < count; ++bit) {
    unsigned first = bit < 3 ? column : row;
    if (!builder.add(Part::Lane, first) && !builder.add(Part::Lane, row) && !builder.add(Part::Lane, column))
      builder.addFree(Part::Lane);
  }
  // Warps alternate between rows and columns, which keeps a thread's part nearly square.
  for (unsigned bit = 0, count = layout::bitsOf(threads.warps); bit < count; ++bit) {
    unsigned first = bit % 2 == 0 ? row : column, second = bit % 2 == 0 ? column : row;
    if (!builder.add(Part::Warp, first) && !builder.add(Part::Warp, second))
      builder.addFree(Part::Warp);
  }
  for (unsigned bit = 0, count = layout::bitsOf(threads.blocks); bit < count; ++bit)
    if (!builder.add(Part::Block, row))
      builder.addFree(Part::Block);
  return builder.finish();
}

WhyNot whyNotMmaSync(tile::DotOp op, const TargetModel &target) {
  auto left = cast<mlir::RankedTensorType>(op.getLhs().getType());
  auto right = cast<mlir::RankedTensorType>(op.getRhs().getType());
  auto sum = cast<mlir::RankedTensorType>(op.getType());
  mlir::Type element = left.getElementType(), wide = sum.getElementType();
  if (!target.hasMmaSync)
    return "the chip has no tensor cores that serve";
  if (sum.getRank() != 2)
    return "the product has a batch dimension";
  if (right.getElementType() != element)
    return "its operands have different element types";
  bool narrowFloat = (element.isF16() || element.isBF16()) && wide.isF32();
  bool isWord = element.isF32() && wide.isF32();
  bool rounded = isWord && op.getPrecision() == tile::DotPrecision::TF32;
  bool float8 =
      target.hasMmaSyncFloat8 && mlir::isa<mlir::Float8E4M3FNType, mlir::Float8E5M2Type>(element) && wide.isF32();
  bool integer = element.isInteger(8) && wide.isInteger(32);
  if (isWord && !rounded)
    return "it needs all bits of float32, and tensor cores round its operands to tf32";
  if (!narrowFloat && !float8 && !rounded && !integer)
    return "tensor cores do not multiply its element type";
  bool fits = sum.getDimSize(0) % 16 == 0 && sum.getDimSize(1) % 8 == 0 &&
              left.getDimSize(1) * elementBytes(element) % kMmaSyncDepthBytes == 0;
  if (!fits)
    return "its result must have multiples of 16 rows and 8 columns, and each of its sums a multiple of " +
           std::to_string(kMmaSyncDepthBytes) + " bytes";
  return std::nullopt;
}

DotKind dotKind(tile::DotOp op, const TargetModel &target) {
  return whyNotMmaSync(op, target) ? DotKind::Fma : DotKind::MmaSync;
}

DotKind dotKind(tile::DotOp op) {
  auto kernel = op->getParentOfType<tile::KernelOp>();
  return getLaunch(kernel).consumers != 0 ? DotKind::Wgmma : dotKind(op, targetOf(kernel));
}
} // namespace kpkg::kgpu
