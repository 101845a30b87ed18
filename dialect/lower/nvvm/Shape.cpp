// Emits coordinates, broadcasts, reshapes and layout conversions, which need at most shuffles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/layout/Conversion.h"
#include "dialect/lower/nvvm/AsyncInstructions.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/Emitter.h"
#include "dialect/lower/nvvm/InlinePtx.h"
#include "dialect/lower/nvvm/MoveRegisters.h"
#include "dialect/lower/nvvm/Words.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

using layout::Coordinates;
using layout::Layout;
using layout::Part;

LogicalResult Emitter::emitIota(tile::IotaOp op) {
  const Layout &layout = kgpu::layoutOf(op.getResult());
  TileRegisters values;
  Value own = warpgroup && ThreadPlace::isSum(layout, 0) ? ptx::hidden(builder, place.coordinate(layout, 0)) : Value();
  for (unsigned reg = 0; reg < layout.registers(); ++reg) {
    Value at = own ? arith::AddIOp::create(builder, own, constantOf(builder, ThreadPlace::ofRegister(layout, reg, 0)),
                                           arith::IntegerOverflowFlags::nsw)
                         .getResult()
                   : place.coordinate(builder, layout, reg, 0);
    values.push_back(arith::IndexCastUIOp::create(builder, builder.getIndexType(), at));
  }
  return emitAs(op, std::move(values));
}

/// Returns thread 0 and the threads with one bit set. Layouts are linear, so a property of these threads holds for all.
static SmallVector<layout::Place> basicThreads(const Layout &layout) {
  SmallVector<layout::Place> threads = {{}};
  for (unsigned bit = 0; bit < layout.bits(Part::Lane); ++bit)
    threads.push_back({0, 1u << bit, 0, 0});
  for (unsigned bit = 0; bit < layout.bits(Part::Warp); ++bit)
    threads.push_back({0, 0, 1u << bit, 0});
  for (unsigned bit = 0; bit < layout.bits(Part::Block); ++bit)
    threads.push_back({0, 0, 0, 1u << bit});
  return threads;
}

LogicalResult Emitter::rename(Operation *op, Value operand, Value result,
                              llvm::function_ref<Coordinates(Coordinates)> source) {
  const Layout &from = kgpu::layoutOf(operand), &to = kgpu::layoutOf(result);
  ArrayRef<int64_t> shape = cast<RankedTensorType>(result.getType()).getShape();
  SmallVector<layout::Place> threads = basicThreads(to);
  ValueRange held = registersOf(operand);
  TileRegisters values;
  for (unsigned reg = 0; reg < to.registers(); ++reg) {
    std::optional<unsigned> found;
    for (layout::Place thread : threads) {
      thread.reg = reg;
      if (!to.isInside(thread, shape))
        continue;
      auto there = from.registerOf(source(to.coordinates(thread)), thread.lane, thread.warp, thread.block);
      if (!there || (found && *found != *there))
        return op->emitOpError("needs elements of other threads: its layouts do not fit together");
      found = there;
    }
    // A register that is padding in every thread may hold any value.
    values.push_back(held[found.value_or(0)]);
  }
  define(result, std::move(values));
  return success();
}

LogicalResult Emitter::emitBroadcast(tile::BroadcastOp op) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getValue().getType()).getShape();
  return rename(op, op.getValue(), op.getResult(), [&](Coordinates at) {
    for (auto [coordinate, extent] : llvm::zip(at, shape))
      coordinate = extent == 1 ? 0 : coordinate;
    return at;
  });
}

LogicalResult Emitter::emitHold(kgpu::HoldOp op) {
  ValueRange held = registersOf(op.getValue());
  SmallVector<Value> words = packWords(builder, held);
  for (Value &word : words)
    word = ptx::hidden(builder, word);
  return emitAs(op, TileRegisters(unpackWords(builder, words, held.front().getType(), held.size())));
}

LogicalResult Emitter::emitOwnPart(kgpu::OwnPartOp op) {
  const Layout &layout = kgpu::layoutOf(op.getResult());
  unsigned axis = op.getAxis();
  SmallVector<uint32_t> strides; // Of the bits of each part, in order.
  for (Part part : {Part::Warp, Part::Block})
    for (const Layout::Basis &basis : layout.bases(part))
      if (basis[axis] != 0)
        strides.push_back(basis[axis]);
  return rename(op, op.getPart(), op.getResult(), [&](Coordinates at) {
    int64_t along = std::exchange(at[axis], 0);
    for (auto [bit, stride] : llvm::enumerate(strides))
      at[axis] |= (along & stride ? int64_t(1) : 0) << bit;
    return at;
  });
}

LogicalResult Emitter::emitColumns(kgpu::ColumnsOp op) {
  return rename(op, op.getValue(), op.getResult(), [&](Coordinates at) {
    at[1] += int64_t(op.getFirst());
    return at;
  });
}

LogicalResult Emitter::emitJoinColumns(kgpu::JoinColumnsOp op) {
  const Layout &to = kgpu::layoutOf(op.getResult());
  int64_t width = cast<RankedTensorType>(op.getParts().front().getType()).getDimSize(1);
  TileRegisters values;
  for (unsigned reg = 0; reg < to.registers(); ++reg) {
    Value found;
    for (layout::Place thread : basicThreads(to)) {
      thread.reg = reg;
      Coordinates at = to.coordinates(thread);
      Value part = op.getParts()[unsigned(at[1] / width)];
      at[1] %= width;
      auto there = kgpu::layoutOf(part).registerOf(at, thread.lane, thread.warp, thread.block);
      Value held = there ? registersOf(part)[*there] : Value();
      if (!held || (found && found != held))
        return op.emitOpError("needs elements of other threads: its layouts do not fit together");
      found = held;
    }
    values.push_back(found);
  }
  define(op, std::move(values));
  return success();
}

/// Returns the tile with an element of a join, and the element's coordinates there.
static std::pair<Value, Coordinates> partAt(tile::JoinOp op, Coordinates at) {
  int64_t &along = at[op.getAxis()];
  for (Value part : op.getParts()) {
    int64_t extent = cast<RankedTensorType>(part.getType()).getDimSize(op.getAxis());
    if (along < extent)
      return {part, at};
    along -= extent;
  }
  llvm_unreachable("the parts have all elements");
}

LogicalResult Emitter::emitReshape(tile::ReshapeOp op) {
  ArrayRef<int64_t> from = cast<RankedTensorType>(op.getValue().getType()).getShape();
  ArrayRef<int64_t> to = cast<RankedTensorType>(op.getResult().getType()).getShape();
  return rename(op, op.getValue(), op.getResult(), [&](Coordinates at) {
    int64_t position = 0;
    for (auto [coordinate, extent] : llvm::zip(at, to))
      position = position * extent + coordinate;
    Coordinates source(from.size());
    for (size_t dim = from.size(); dim-- > 0; position /= from[dim])
      source[dim] = position % from[dim];
    return source;
  });
}

LogicalResult Emitter::emitPermute(tile::PermuteOp op) {
  return rename(op, op.getValue(), op.getResult(), [&](Coordinates at) {
    Coordinates source(at.size());
    for (auto [dim, from] : llvm::enumerate(op.getPermutation()))
      source[from] = at[dim];
    return source;
  });
}

LogicalResult Emitter::emitExtract(tile::ExtractOp op) {
  return rename(op, op.getValue(), op.getResult(), [&](Coordinates at) {
    for (auto [coordinate, offset, step] : llvm::zip_equal(at, op.getOffsets(), op.getSteps()))
      coordinate = offset + step * coordinate;
    return at;
  });
}

LogicalResult Emitter::emitJoin(tile::JoinOp op) {
  const Layout &to = kgpu::layoutOf(op.getResult());
  ArrayRef<int64_t> shape = cast<RankedTensorType>(op.getType()).getShape();
  SmallVector<layout::Place> threads = basicThreads(to);
  TileRegisters values;
  for (unsigned reg = 0; reg < to.registers(); ++reg) {
    Value found;
    for (layout::Place thread : threads) {
      thread.reg = reg;
      if (!to.isInside(thread, shape))
        continue;
      auto [part, at] = partAt(op, to.coordinates(thread));
      auto there = kgpu::layoutOf(part).registerOf(at, thread.lane, thread.warp, thread.block);
      Value held = there ? registersOf(part)[*there] : Value();
      if (!held || (found && found != held))
        return op.emitOpError("needs elements of other threads: its layouts do not fit together");
      found = held;
    }
    // A register that is padding in every thread may hold any value.
    values.push_back(found ? found : registersOf(op.getParts().front()).front());
  }
  define(op, std::move(values));
  return success();
}

LogicalResult Emitter::emitConversion(kgpu::CvtLayoutOp op) {
  const Layout &from = kgpu::layoutOf(op.getValue()), &to = kgpu::layoutOf(op.getResult());
  ValueRange held = registersOf(op.getValue());
  if (std::optional<layout::Rename> plan = layout::planRename(from, to)) {
    define(op, moveRegisters(builder, *plan, held));
    return success();
  }
  std::optional<layout::ShufflePlan> plan = layout::planShuffles(from, to, bytesOf(held.front().getType()));
  if (!plan)
    return op.emitOpError("moves elements between warps, which must have been expanded before");
  define(op, moveRegisters(builder, *plan, held, place.bits(from), from.bits(Part::Warp)));
  return success();
}

} // namespace kpkg::lower::nvvm
