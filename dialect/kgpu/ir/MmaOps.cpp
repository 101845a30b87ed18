// Verifiers of mma.sync products, and of the copies that feed them with their accesses to shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/kgpu/ir/MmaFragments.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::kgpu;

LogicalResult MmaOp::verify() {
  auto left = cast<RankedTensorType>(getLhs().getType()), right = cast<RankedTensorType>(getRhs().getType());
  auto sum = cast<RankedTensorType>(getType());
  for (RankedTensorType type : {left, right, sum})
    if (!hasLayout(type) || type.getRank() != 2)
      return emitOpError() << "needs rank 2 and a layout on " << type;
  Type element = left.getElementType(), wide = sum.getElementType();
  bool isFloat =
      (element.isF16() || element.isBF16() || element.isF32() || isa<Float8E4M3FNType, Float8E5M2Type>(element)) &&
      wide.isF32();
  bool isInteger = element.isInteger(8) && wide.isInteger(32);
  if (right.getElementType() != element || (!isFloat && !isInteger))
    return emitOpError() << "does not multiply " << element << " and " << right.getElementType() << " into " << wide;
  int64_t depth = left.getDimSize(1), bytes = elementBytes(element);
  if (left.getDimSize(0) != sum.getDimSize(0) || right.getDimSize(1) != sum.getDimSize(1) ||
      right.getDimSize(0) != depth || depth * bytes % kMmaSyncDepthBytes != 0)
    return emitOpError() << "does not multiply " << left << " and " << right << " into " << sum;
  if (!isMmaSyncAccumulator(layoutOf(sum)))
    return emitOpError() << "has an accumulator in the layout " << layoutOf(sum).str()
                         << ", which is not the instruction's";
  for (const auto &[given, wanted] : {std::pair(left, mmaSyncLeft(layoutOf(sum), depth, bytes)),
                                      std::pair(right, mmaSyncRight(layoutOf(sum), depth, bytes))})
    if (layoutOf(given) != wanted)
      return emitOpError() << "has an operand in the layout " << layoutOf(given).str() << " where " << wanted.str()
                           << " belongs to the accumulator";
  return success();
}

LogicalResult AsyncCopyOp::verify() {
  auto view = cast<tile::ViewType>(getView().getType());
  SharedType buffer = getBuffer().getType();
  if (view.getElementType() != buffer.getElementType() || view.getRank() != int64_t(buffer.getShape().size()) ||
      getOffsets().size() != buffer.getShape().size())
    return emitOpError() << "cannot copy from " << view << " to " << buffer;
  if (!getLayout().getLayout().covers(buffer.getShape()))
    return emitOpError() << "has the layout " << getLayout().getLayout().str() << ", which does not cover " << buffer;
  return success();
}

LogicalResult AsyncGatherOp::verify() {
  auto view = cast<tile::ViewType>(getView().getType());
  SharedType buffer = getBuffer().getType();
  if (view.getElementType() != buffer.getElementType() || int64_t(getIndices().size()) != view.getRank())
    return emitOpError() << "cannot copy from " << view << " to " << buffer;
  for (Value index : getIndices()) {
    auto type = cast<RankedTensorType>(index.getType());
    if (index.getType() != getIndices().front().getType() || !hasLayout(type) || type.getShape() != buffer.getShape())
      return emitOpError() << "needs indices of one layout in the shape of " << buffer << ", not " << type;
  }
  return success();
}

void AsyncGatherOp::getSharedAccesses(SmallVectorImpl<SharedMemoryAccess> &accesses) {
  accesses.push_back({getBuffer(), /*isWrite=*/true, SharedMemoryAccess::Scope::Ring});
}

void AsyncCopyOp::getSharedAccesses(SmallVectorImpl<SharedMemoryAccess> &accesses) {
  accesses.push_back({getBuffer(), /*isWrite=*/true, SharedMemoryAccess::Scope::Ring});
}
