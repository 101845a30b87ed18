// Verifiers and value ranges of ops for rings, roles and wgmma products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::kgpu;

/// A grid has fewer than 2^31 CTAs along x.
static ConstantIntRanges rangeOfCtas(int64_t least) {
  constexpr unsigned bits = 64;
  return ConstantIntRanges::fromSigned(APInt(bits, least), APInt(bits, std::numeric_limits<int32_t>::max()));
}
void CtaIdOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) { set(getResult(), rangeOfCtas(0)); }
void CtaCountOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) { set(getResult(), rangeOfCtas(1)); }

void ClusterIdOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), rangeOfCtas(0));
}
void ClusterRankOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  constexpr unsigned bits = 64, mostCtas = 16;
  set(getResult(), ConstantIntRanges::fromUnsigned(APInt(bits, 0), APInt(bits, mostCtas - 1)));
}

void NextTileOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) { set(getResult(), rangeOfCtas(1)); }
void ConsumeIndexOp::inferResultRanges(ArrayRef<ConstantIntRanges>, SetIntRangeFn set) {
  set(getResult(), rangeOfCtas(1));
}

LogicalResult RolesOp::verify() {
  auto kernel = (*this)->getParentOfType<tile::KernelOp>();
  if (!kernel || getLaunch(kernel).consumers == 0)
    return emitOpError() << "needs a kernel whose launch has consumers";
  if (!getProducers().empty() && (getLaunch(kernel).producers == 0 || !getProducers().hasOneBlock()))
    return emitOpError() << "has a part for producers, which the kernel's launch lacks";
  return success();
}

LogicalResult RingOp::verify() {
  SharedType barriers = getBarriers().getType();
  if (barriers.getShape() != ArrayRef<int64_t>{getKind() == RingKind::Channel ? 3 : 2, getType().getSlots()} ||
      !barriers.getElementType().isInteger(64))
    return emitOpError() << barriers << " is no place for the barriers of " << getType();
  return success();
}

static LogicalResult verifyChannel(Operation *op, Value ring) {
  auto channel = ring.getDefiningOp<RingOp>();
  return channel && channel.getKind() != RingKind::Channel ? op->emitOpError("needs a channel") : success();
}
LogicalResult PublishIndexOp::verify() { return verifyChannel(*this, getRing()); }
LogicalResult ConsumeIndexOp::verify() { return verifyChannel(*this, getRing()); }

LogicalResult Im2colLoadOp::verify() {
  auto kernel = (*this)->getParentOfType<tile::KernelOp>();
  size_t extents = getWindow().getCounts().size();
  if (getOffsets().size() != extents + 2 || getTaps().size() != extents)
    return emitOpError() << "needs " << extents + 2 << " offsets and " << extents << " taps";
  if (cast<RankedTensorType>(getType()).getRank() != 2)
    return emitOpError("gives a tile of pixels and channels");
  return kernel ? verifyWindow(kernel, getView().getType(), getWindow()) : success();
}

LogicalResult TensorLoadOp::verify() {
  if (int64_t(getOffsets().size()) != getView().getType().getRank())
    return emitOpError() << "needs an offset for each of the " << getView().getType().getRank()
                         << " dimensions of its view";
  if (!isa<BlockArgument>(getView()))
    return emitOpError("copies from an argument of the kernel");
  if (!getTaps().empty() && int64_t(getTaps().size()) != getView().getType().getRank() - 2)
    return emitOpError() << "is moved along " << getTaps().size() << " of " << getView().getType().getRank() - 2
                         << " extents";
  if (static_cast<int64_t>(getDistance()) >= getBuffer().getType().getSizeBytes())
    return emitOpError() << "starts " << getDistance() << " bytes behind the beginning of " << getBuffer().getType();
  if (getMulticast() && (static_cast<int64_t>(*getMulticast()) >= getView().getType().getRank() ||
                         static_cast<int64_t>(*getMulticast()) == getView().getType().getUnit()))
    return emitOpError() << "cannot be shared out along dimension " << *getMulticast();
  return success();
}

LogicalResult TensorStoreOp::verify() {
  auto value = cast<RankedTensorType>(getValue().getType());
  SharedType staging = getStaging().getType();
  if (int64_t(getOffsets().size()) != getView().getType().getRank())
    return emitOpError() << "needs an offset for each of the " << getView().getType().getRank()
                         << " dimensions of its view";
  if (!isa<BlockArgument>(getView()) || !getView().getType().getIsMut())
    return emitOpError("copies to an argument of the kernel that it may write");
  int64_t bytes = elementBytes(value.getElementType());
  if (staging.getShape().size() != 4 || staging.getShape()[2] != 64 || value.getRank() != 2 ||
      value.getDimSize(1) * bytes % (staging.getShape()[3] * staging.getElementBytes()) != 0 ||
      value.getDimSize(0) % 64 != 0)
    return emitOpError() << "cannot bring " << value << " through " << staging;
  if (getAdds() ? !value.getElementType().isF32() || staging.getShape()[3] * staging.getElementBytes() != 128
                : bytes != 2)
    return emitOpError() << (getAdds() ? "adds elements of f32 in rows of 128 bytes" : "copies elements of 16 bits");
  return success();
}

LogicalResult PublishAllOp::verify() {
  auto value = cast<RankedTensorType>(getValue().getType());
  SharedType buffer = getBuffer().getType();
  if (!hasLayout(value))
    return emitOpError("needs a layout on its tile");
  if (value.getShape() != buffer.getShape() || value.getElementType() != buffer.getElementType() ||
      panelDim(buffer) != 1 || buffer.getElementBytes() != 2)
    return emitOpError() << "cannot bring " << value << " to " << buffer;
  return success();
}

LogicalResult PublishOp::verify() {
  auto value = cast<RankedTensorType>(getValue().getType());
  SharedType buffer = getBuffer().getType();
  if (!hasLayout(value))
    return emitOpError("needs a layout on its tile");
  if (value.getShape() != buffer.getShape() || value.getElementType() != buffer.getElementType())
    return emitOpError() << "cannot bring " << value << " to " << buffer;
  auto ring = getRing().getDefiningOp<RingOp>();
  return ring && ring.getKind() != RingKind::Published ? emitOpError("needs a ring of tiles that are published")
                                                       : success();
}

std::optional<layout::SharedLayout> kgpu::panelsOf(ArrayRef<int64_t> shape, unsigned panelDim, unsigned elementBytes) {
  constexpr unsigned panelBytes = 128;
  SmallVector<int64_t> rows = {shape[1 - panelDim], int64_t(llvm::alignTo(shape[panelDim], panelBytes / elementBytes))};
  auto memory = layout::SharedLayout::tma(rows, elementBytes, layout::Swizzle::B128);
  if (!memory) {
    llvm::consumeError(memory.takeError());
    return std::nullopt;
  }
  return panelDim == 1 ? *memory : layout::transposed(*memory);
}

bool kgpu::isNarrowPanel(SharedType buffer) {
  if (!buffer.getMemory() || buffer.getShape().size() != 2 || buffer.getShape()[1] * buffer.getElementBytes() != 64)
    return false;
  auto memory = layout::SharedLayout::tma(buffer.getShape(), buffer.getElementBytes(), layout::Swizzle::B64);
  if (!memory) {
    llvm::consumeError(memory.takeError());
    return false;
  }
  return *memory == buffer.getMemory();
}

std::optional<unsigned> kgpu::panelDim(SharedType buffer) {
  if (!buffer.getMemory() || buffer.getShape().size() != 2)
    return std::nullopt;
  for (unsigned dim : {1u, 0u})
    if (panelsOf(buffer.getShape(), dim, buffer.getElementBytes()) == buffer.getMemory())
      return dim;
  return std::nullopt;
}

bool kgpu::isWgmmaElement(Type element, Type sum) {
  if (element.isInteger(8))
    return sum.isInteger(32);
  return sum.isF32() &&
         (element.isBF16() || element.isF16() || element.isF32() || isa<Float8E4M3FNType, Float8E5M2Type>(element));
}

LogicalResult ClearOutsideOp::verify() {
  if (!panelDim(getBuffer().getType()))
    return emitOpError() << "cannot find rows in " << getBuffer().getType();
  return success();
}

LogicalResult WgmmaOp::verify() {
  auto lhs = dyn_cast<SharedType>(getLhs().getType());
  auto tile = dyn_cast<RankedTensorType>(getLhs().getType());
  SharedType rhs = getRhs().getType();
  auto sum = cast<RankedTensorType>(getAccumulator().getType());
  if ((lhs && !panelDim(lhs) && !isNarrowPanel(lhs)) || !panelDim(rhs))
    return emitOpError("reads operands in panels of 128 bytes");
  SmallVector<int64_t> left(lhs ? lhs.getShape() : tile.getShape());
  auto positions = getPositions() ? cast<RankedTensorType>(getPositions().getType()) : RankedTensorType();
  if (positions && left.size() == 2) {
    left[1] *= 2;
    if (!lhs || lhs.getElementBytes() != 2 || panelDim(lhs) != 1 || lhs.getElementType().isInteger())
      return emitOpError(
          "with positions reads a left operand of 16-bit floats along what is summed over, from shared memory");
    if (!positions.getElementType().isInteger(16) || left[1] % 64 != 0 ||
        positions.getShape() != ArrayRef<int64_t>{left[0], left[1] / 16})
      return emitOpError() << "takes positions i16 of " << left[0] << " x " << left[1] << " / 16, not " << positions;
  }
  bool isNarrow = lhs && isNarrowPanel(lhs);
  int64_t row = int64_t(getRow()), rest = rhs.getShape()[0] - row;
  bool fits = left.size() == 2 &&
              (isNarrow ? left[0] == 64 && left[1] <= rest && row % left[1] == 0 : row == 0 && left[1] == rest) &&
              sum.getRank() == 2 && sum.getDimSize(0) == left[0];
  if (!fits || sum.getDimSize(1) > rhs.getShape()[1]) {
    InFlightDiagnostic diagnostic = emitOpError() << "cannot multiply " << left << " by " << rhs.getShape();
    if (row != 0)
      diagnostic << " from row " << row;
    return diagnostic << " into " << sum.getShape();
  }
  Type element = rhs.getElementType(), other = lhs ? lhs.getElementType() : tile.getElementType();
  if (element != other || !isWgmmaElement(element, sum.getElementType()))
    return emitOpError() << "cannot multiply " << other << " by " << element << " into " << sum.getElementType();
  if (elementBytes(element) != 2 && ((lhs && !isNarrow && panelDim(lhs) != 1) || panelDim(rhs) != 0))
    return emitOpError() << "reads operands of " << element << " along what is summed over, from shared memory";
  if (!hasLayout(sum) || (tile && !hasLayout(tile)) || (positions && !hasLayout(positions)))
    return emitOpError("needs a layout on its tiles");
  return success();
}

LogicalResult WgmmaWaitOp::verify() {
  if (getValues().getTypes() != getResults().getTypes())
    return emitOpError("gives what it takes");
  return success();
}

void WgmmaWaitOp::build(OpBuilder &, OperationState &state, int64_t pending, ValueRange values) {
  state.getOrAddProperties<Properties>().pending = IntegerAttr::get(IntegerType::get(state.getContext(), 64), pending);
  state.addOperands(values);
  state.addTypes(values.getTypes());
}
