// Computes the position of this thread, and its contribution to the coordinates of its registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/ThreadPlace.h"
#include "dialect/lower/nvvm/DeviceOps.h"
#include "dialect/lower/nvvm/SharedMemory.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::lower::nvvm {

using layout::Layout;
using layout::Part;

void ThreadPlace::start(Block *block, Location location, unsigned threads) {
  entry = block;
  loc = location;
  threadsPerBlock = threads;
}

ImplicitLocOpBuilder ThreadPlace::atEntry() {
  ImplicitLocOpBuilder builder(*loc, entry->getParentOp()->getContext());
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(entry);
  return builder;
}

Value &ThreadPlace::remember(Value &slot, Value value) {
  last = value.getDefiningOp();
  return slot = value;
}

Value ThreadPlace::thread() {
  ImplicitLocOpBuilder builder = atEntry();
  return threadValue ? threadValue : remember(threadValue, threadId(builder));
}

Value ThreadPlace::lane() {
  if (laneValue)
    return laneValue;
  Value id = thread();
  ImplicitLocOpBuilder builder = atEntry();
  return remember(laneValue,
                  arith::AndIOp::create(builder, id, constantOf(builder, std::min(threadsPerBlock, 32u) - 1)));
}

Value ThreadPlace::warp() {
  if (warpValue)
    return warpValue;
  Value id = thread();
  ImplicitLocOpBuilder builder = atEntry();
  return remember(warpValue, arith::ShRUIOp::create(builder, id, constantOf(builder, 5)));
}

Value ThreadPlace::block() {
  ImplicitLocOpBuilder builder = atEntry();
  return blockValue ? blockValue : remember(blockValue, ctaOfCluster(builder));
}

ThreadBits ThreadPlace::bits(const Layout &layout) {
  ThreadBits bits;
  bits.lane = lane();
  bits.warp = warp();
  bits.block = layout.bits(Part::Block) ? block() : Value();
  return bits;
}

Value ThreadPlace::coordinate(const Layout &layout, unsigned dim) {
  for (auto &[key, value] : coordinates)
    if (key.second == dim && key.first == layout)
      return value;
  ThreadBits thread = bits(layout);
  ImplicitLocOpBuilder builder = atEntry();
  Value sum;
  for (Part part : {Part::Lane, Part::Warp, Part::Block}) {
    SmallVector<uint32_t> images;
    for (const Layout::Basis &basis : layout.bases(part))
      images.push_back(basis[dim]);
    sum = xorOf(builder, sum, xorOfImages(builder, thread.part(part), images));
  }
  if (!sum)
    sum = constantOf(builder, 0);
  // The value may have been created earlier for another layout.
  if (!last || (sum.getDefiningOp() && last->isBeforeInBlock(sum.getDefiningOp())))
    last = sum.getDefiningOp();
  coordinates.push_back({{layout, dim}, sum});
  return sum;
}

bool ThreadPlace::isSum(const Layout &layout, unsigned dim) {
  int32_t used = 0;
  for (Part part : layout::parts)
    for (const Layout::Basis &basis : layout.bases(part)) {
      if (used & basis[dim])
        return false;
      used |= basis[dim];
    }
  return true;
}

Value ThreadPlace::coordinate(ImplicitLocOpBuilder &builder, const Layout &layout, unsigned reg, unsigned dim) {
  Value thread = coordinate(layout, dim);
  int64_t own = ofRegister(layout, reg, dim);
  if (own == 0)
    return thread;
  if (isSum(layout, dim))
    return arith::AddIOp::create(builder, thread, constantOf(builder, own), arith::IntegerOverflowFlags::nsw);
  // Within the atom coordinates combine by XOR; repeats lie outside of it.
  int64_t inAtom = own & (layout.atom()[dim] - 1);
  Value sum = arith::XOrIOp::create(builder, thread, constantOf(builder, inAtom));
  return arith::AddIOp::create(builder, sum, constantOf(builder, own - inAtom), arith::IntegerOverflowFlags::nsw);
}

Value ThreadPlace::isFirstReplica(const Layout &layout) { return isFirst(layout, layout.freeBits(Part::Block)); }

Value ThreadPlace::isFirstInCta(const Layout &layout) { return isFirst(layout, 0); }

Value ThreadPlace::isFirst(const Layout &layout, unsigned blockMask) {
  // Lanes and warps of the block beyond those of the layout hold replicas too.
  unsigned lanes = std::min(threadsPerBlock, 32u),
           warps = std::max<unsigned>(llvm::PowerOf2Ceil(threadsPerBlock / 32), 1);
  unsigned laneMask = layout.freeBits(Part::Lane) | ((lanes - 1) & ~(layout.lanes() - 1));
  unsigned warpMask = layout.freeBits(Part::Warp) | ((warps - 1) & ~(layout.warps() - 1));
  ThreadBits thread = bits(layout);
  ImplicitLocOpBuilder builder = atEntry();
  Value first = nvvm::isFirstReplica(builder, thread, laneMask, warpMask);
  if (blockMask != 0) {
    Value bits = arith::AndIOp::create(builder, thread.block, constantOf(builder, blockMask));
    Value zero = arith::CmpIOp::create(builder, arith::CmpIPredicate::eq, bits, constantOf(builder, 0));
    first = first ? arith::AndIOp::create(builder, first, zero).getResult() : zero;
  }
  if (first)
    last = first.getDefiningOp();
  return first;
}

} // namespace kpkg::lower::nvvm
