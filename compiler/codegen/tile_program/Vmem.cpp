// Estimates the VMEM that a kernel needs on a TPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/codegen/tile_program/TileProgram.h"
#include "mlir/Analysis/Liveness.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace kpkg::compiler {

namespace {

constexpr int64_t kLanes = 128, kSublanes = 8;

/// Returns the bytes of a tile in VMEM. Bits, index values and 64-bit integers have 32 bits there; elements of 8 and 16
/// bits share words along the last but one dimension.
int64_t tiledBytes(mlir::RankedTensorType type) {
  mlir::Type element = type.getElementType();
  int64_t bytes =
      element.isIndex() || element.isInteger(1) || element.isInteger(64) ? 4 : element.getIntOrFloatBitWidth() / 8;
  SmallVector<int64_t> shape(type.getShape());
  if (shape.size() == 1)
    shape.insert(shape.begin(), 1);
  shape.back() = int64_t(alignTo(uint64_t(shape.back()), kLanes));
  int64_t &rows = shape[shape.size() - 2];
  rows = int64_t(alignTo(uint64_t(rows), uint64_t(kSublanes * 4 / bytes)));
  int64_t count = bytes;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

/// Returns the tile's bytes, or 0 for a constant, which takes no memory, and for what is no tile.
int64_t liveBytes(mlir::Value value) {
  auto tile = dyn_cast<mlir::RankedTensorType>(value.getType());
  mlir::Operation *op = value.getDefiningOp();
  return !tile || (op && op->hasTrait<mlir::OpTrait::ConstantLike>()) ? 0 : tiledBytes(tile);
}

/// Returns the most bytes that are live at once in a block, with those of the blocks within.
int64_t peakOf(mlir::Block &block, const mlir::Liveness &liveness) {
  const mlir::LivenessBlockInfo *info = liveness.getLiveness(&block);
  SmallPtrSet<mlir::Value, 32> live;
  int64_t now = 0, peak = 0;
  auto add = [&](mlir::Value value) {
    if (live.insert(value).second)
      now += liveBytes(value);
  };
  for (mlir::Value value : info->in())
    add(value);
  for (mlir::Value argument : block.getArguments())
    add(argument);
  peak = now;
  for (mlir::Operation &op : block) {
    for (mlir::Region &region : op.getRegions())
      for (mlir::Block &inner : region)
        peak = std::max(peak, peakOf(inner, liveness));
    for (mlir::Value result : op.getResults())
      add(result);
    peak = std::max(peak, now);
    for (mlir::Value value : to_vector(live))
      if (info->getEndOperation(value, &op) == &op && !info->isLiveOut(value) && live.erase(value))
        now -= liveBytes(value);
  }
  return peak;
}

} // namespace

int64_t vmemBytes(tile::KernelOp kernel) {
  SmallPtrSet<mlir::Type, 8> buffers;
  kernel.getBody().walk([&](mlir::Operation *op) {
    if (auto load = dyn_cast<tile::LoadOp>(op))
      buffers.insert(load.getType());
    if (auto store = dyn_cast<tile::StoreOp>(op))
      buffers.insert(store.getValue().getType());
    if (auto store = dyn_cast<tile::AddStoreOp>(op))
      buffers.insert(store.getValue().getType());
  });
  int64_t bytes = 0;
  for (mlir::Type type : buffers) {
    auto tile = dyn_cast<mlir::RankedTensorType>(type);
    bytes += tile ? tiledBytes(tile) : kSublanes * kLanes * 4; // a scalar takes a tile of the hardware
  }
  return bytes + peakOf(kernel.getBody().front(), mlir::Liveness(kernel));
}

} // namespace kpkg::compiler
