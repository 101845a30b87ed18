// What the copying role of a kernel with products puts into rings.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/async/CopiedOperands.h"

using namespace mlir;

namespace kpkg::kgpu {

static constexpr int64_t kFewestBytes = 128, kMostElements = 256; // of a row that is worth a copy, and that one box holds

bool haveOneRing(const Stream &left, const Stream &right) {
  return left.members.size() == right.members.size() && llvm::all_of_zip(left.members, right.members, [](const Member &one, const Member &other) {
           const TensorView &first = one.operand.place, &second = other.operand.place;
           return one.slot == other.slot && first.argument == second.argument && first.box == second.box && first.window == second.window;
         });
}

Member memberFor(const StreamedOperand &operand, Value tile) {
  auto type = cast<RankedTensorType>(tile.getType());
  unsigned bytes = elementBytes(type.getElementType());
  return {operand, SharedType::get(type.getShape(), type.getElementType(), *panelsOf(type.getShape(), operand.panelDim, bytes))};
}

std::optional<TensorView> rowPlace(tile::LoadOp load) {
  return tensorView(load.getView(), load.getOffsets(), cast<RankedTensorType>(load.getType()).getShape());
}

std::optional<Member> rowMember(tile::LoadOp load) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  if (!type || type.getRank() != 1 || !isZero(load.getFill()) || load.getView().getType().getIsMut())
    return std::nullopt;
  int64_t extent = type.getDimSize(0), bytes = elementBytes(type.getElementType());
  std::optional<TensorView> place = rowPlace(load);
  if (!place || !llvm::isPowerOf2_64(extent) || extent > kMostElements || extent * bytes < kFewestBytes)
    return std::nullopt;
  layout::SharedLayout::Fields fields;
  fields.elementBytes = bytes;
  fields.bases.emplace_back();
  for (int64_t at = bytes; at < extent * bytes; at *= 2)
    fields.bases.front().push_back(at);
  fields.repeats = {1};
  fields.strides = {0};
  StreamedOperand operand{load, *place};
  return Member{operand, SharedType::get(type.getShape(), type.getElementType(), cantFail(layout::SharedLayout::get(std::move(fields))))};
}

} // namespace kpkg::kgpu
