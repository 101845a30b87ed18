// Builds linear maps of thread bits from shifts and masks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/lower/nvvm/ThreadBits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/bit.h"
#include <map>

namespace kpkg::lower::nvvm {
using namespace mlir;

Value ThreadBits::part(layout::Part part) const {
  switch (part) {
  case layout::Part::Lane:
    return lane;
  case layout::Part::Warp:
    return warp;
  case layout::Part::Block:
    return block;
  case layout::Part::Register:
    break;
  }
  llvm_unreachable("registers are no thread bits");
}

Value constantOf(ImplicitLocOpBuilder &builder, int64_t value) {
  return arith::ConstantOp::create(builder, builder.getI32IntegerAttr(value));
}

Value xorOf(ImplicitLocOpBuilder &builder, Value left, Value right) {
  if (!left || !right)
    return left ? left : right;
  return arith::XOrIOp::create(builder, left, right);
}

Value xorOfImages(ImplicitLocOpBuilder &builder, Value bits, ArrayRef<uint32_t> images) {
  // Bit i of the argument moves to every bit of images[i]. Bits with the same distance move together.
  std::map<int, uint32_t> maskOfDistance;
  for (auto [bit, image] : llvm::enumerate(images))
    for (uint32_t rest = image; rest; rest &= rest - 1)
      maskOfDistance[llvm::countr_zero(rest) - static_cast<int>(bit)] |= 1u << bit;
  Value result;
  for (auto [distance, mask] : maskOfDistance) {
    // Always masks, because the thread may have more bits than there are images. LLVM removes the mask where it can.
    Value moved = arith::AndIOp::create(builder, bits, constantOf(builder, mask));
    if (distance > 0)
      moved = arith::ShLIOp::create(builder, moved, constantOf(builder, distance));
    if (distance < 0)
      moved = arith::ShRUIOp::create(builder, moved, constantOf(builder, -distance));
    result = xorOf(builder, result, moved);
  }
  return result;
}

Value parityOf(ImplicitLocOpBuilder &builder, const ThreadBits &thread, uint64_t mask, unsigned laneBits,
               unsigned warpBits) {
  Value odd;
  auto take = [&](Value bits, uint64_t part) {
    if (part == 0)
      return;
    Value masked = arith::AndIOp::create(builder, bits, constantOf(builder, part));
    Value bit =
        llvm::isPowerOf2_64(part)
            ? Value(arith::CmpIOp::create(builder, arith::CmpIPredicate::ne, masked, constantOf(builder, 0)))
            : Value(arith::TruncIOp::create(builder, builder.getI1Type(), math::CtPopOp::create(builder, masked)));
    odd = xorOf(builder, odd, bit);
  };
  take(thread.lane, mask & ((uint64_t(1) << laneBits) - 1));
  take(thread.warp, mask >> laneBits & ((uint64_t(1) << warpBits) - 1));
  take(thread.block, mask >> (laneBits + warpBits));
  return odd;
}
} // namespace kpkg::lower::nvvm
