// Emits warp-level matrix products as tensor-core instructions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/MmaFragments.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/Words.h"

using namespace mlir;

namespace kpkg::lower::nvvm {
using layout::Layout;

namespace {
/// The words of an operand, packed once and indexed by the register of their first element.
class Words {
public:
  Words(ImplicitLocOpBuilder &builder, const Layout &layout, ValueRange registers, unsigned elementBytes)
      : layout(layout), perWord(4 / elementBytes) {
    if (!registers.front().getType().isF32()) {
      words = packWords(builder, registers);
      return;
    }
    // The instruction would truncate towards zero.
    for (Value value : registers)
      words.push_back(roundToTf32(builder, value));
  }
  Value at(int64_t row, int64_t column) const { return words[*layout.registerOf({row, column}, 0) / perWord]; }

private:
  const Layout &layout;
  unsigned perWord;
  SmallVector<Value> words;
};
} // namespace

LogicalResult Emitter::emitMma(kgpu::MmaOp op) {
  auto left = cast<RankedTensorType>(op.getLhs().getType());
  Type element = left.getElementType();
  unsigned bytes = bytesOf(element);
  int64_t depth = left.getDimSize(1), half = 16 / bytes;
  Words rows(builder, kgpu::layoutOf(left), registersOf(op.getLhs()), bytes);
  Words columns(builder, kgpu::layoutOf(op.getRhs()), registersOf(op.getRhs()), bytes);
  const Layout &layout = kgpu::layoutOf(op.getResult());
  TileRegisters sums(registersOf(op.getAccumulator()));
  for (int64_t k = 0; k < depth; k += 2 * half)
    for (unsigned reg = 0; reg < sums.size(); reg += 4) {
      layout::Coordinates at = layout.coordinates({reg, 0, 0, 0});
      SmallVector<Value> a = {rows.at(at[0], k), rows.at(at[0] + 8, k), rows.at(at[0], k + half),
                              rows.at(at[0] + 8, k + half)};
      SmallVector<Value> b = {columns.at(k, at[1]), columns.at(k + half, at[1])};
      SmallVector<Value> next = mmaSync(builder, element, a, b, ValueRange(sums).slice(reg, 4));
      llvm::copy(next, sums.begin() + reg);
    }
  define(op, std::move(sums));
  return success();
}
} // namespace kpkg::lower::nvvm
