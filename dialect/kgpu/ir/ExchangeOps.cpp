// Verifiers and shared-memory accesses of exchanges between CTAs of a cluster, and of fetches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/KgpuDialect.h"

using namespace mlir;
using namespace kpkg;
using namespace kpkg::kgpu;

using layout::Part;
using Scope = SharedMemoryAccess::Scope;

static bool isBarriers(SharedType type) {
  return type.getShape().size() == 1 && type.getElementType().isInteger(64) && !type.getMemory();
}

LogicalResult ExchangeInitOp::verify() {
  if (!isBarriers(getBarriers().getType()))
    return emitOpError() << getBarriers().getType() << " is no place for barriers";
  return success();
}

bool kgpu::canExchange(const layout::Layout &part, Type element, const Launch &launch) {
  int64_t bytes = elementBytes(element);
  unsigned lanes = part.bits(Part::Lane), warps = part.bits(Part::Warp), ctas = part.bits(Part::Block);
  bool inAllLanes = part.freeBits(Part::Lane) == (1u << lanes) - 1;
  bool isOnce = part.freeBits(Part::Warp) == 0 && part.freeBits(Part::Block) == 0;
  bool byAll = launch.threads != 0 && (1u << warps) == launch.warps() && (1u << ctas) == launch.cluster &&
               launch.cluster > 1 && launch.cluster <= launch.lanes();
  return (bytes == 4 || bytes == 8) && inAllLanes && isOnce && byAll;
}

LogicalResult ExchangeOp::verify() {
  if (getParts().size() != getBuffers().size() || getParts().empty())
    return emitOpError("needs a buffer for each part");
  if (!isBarriers(getBarriers().getType()))
    return emitOpError() << getBarriers().getType() << " is no place for barriers";
  auto kernel = (*this)->getParentOfType<tile::KernelOp>();
  for (auto [part, buffer] : llvm::zip_equal(getParts(), getBuffers())) {
    auto tile = cast<RankedTensorType>(part.getType());
    auto place = cast<SharedType>(buffer.getType());
    if (!hasLayout(tile) || tile.getShape() != place.getShape() || tile.getElementType() != place.getElementType())
      return emitOpError() << "moves " << tile << ", which is not the tile of " << place;
    if (kernel && !canExchange(layoutOf(tile), tile.getElementType(), getLaunch(kernel)))
      return emitOpError()
             << "moves " << tile
             << ", which is not held once by all warps of the cluster, in all lanes, in elements of 4 or 8 bytes";
  }
  return success();
}

/// Checks that the buffer of a fetch has as many bytes as all threads hold.
static LogicalResult verifyFetch(Operation *op, RankedTensorType tile, tile::ViewType view, unsigned offsets,
                                 SharedType buffer) {
  if (!hasLayout(tile))
    return op->emitOpError() << "needs a layout on " << tile;
  if (tile.getElementType() != view.getElementType() || tile.getRank() != view.getRank() ||
      int64_t(offsets) != view.getRank())
    return op->emitOpError() << "cannot read " << tile << " from " << view;
  auto kernel = op->getParentOfType<tile::KernelOp>();
  if (!kernel)
    return success();
  int64_t bytes = int64_t(layoutOf(tile).registers()) * elementBytes(tile.getElementType()) * getLaunch(kernel).threads;
  if (buffer.getShape() != ArrayRef<int64_t>{bytes} || !buffer.getElementType().isInteger(8) || buffer.getMemory())
    return op->emitOpError() << "needs " << bytes << " bytes, not " << buffer;
  return success();
}

LogicalResult TouchOp::verify() {
  tile::ViewType view = getView().getType();
  auto tile = cast<RankedTensorType>(getTile());
  if (view.getRank() != 1 || view.getUnit() != 0 || getOffsets().size() != 1 || tile.getRank() != 1 ||
      tile.getElementType() != view.getElementType())
    return emitOpError() << "cannot bring " << tile << " from " << view;
  return success();
}
LogicalResult FetchOp::verify() {
  return verifyFetch(*this, cast<RankedTensorType>(getTile()), getView().getType(), getOffsets().size(),
                     getBuffer().getType());
}
LogicalResult FetchedOp::verify() {
  return verifyFetch(*this, cast<RankedTensorType>(getType()), getView().getType(), getOffsets().size(),
                     getBuffer().getType());
}

void FetchOp::getSharedAccesses(SmallVectorImpl<SharedMemoryAccess> &accesses) {
  accesses.push_back({getBuffer(), /*isWrite=*/true, Scope::Thread});
}
void FetchedOp::getSharedAccesses(SmallVectorImpl<SharedMemoryAccess> &accesses) {
  accesses.push_back({getBuffer(), /*isWrite=*/false, Scope::Thread});
}
