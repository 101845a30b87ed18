// Expands unpacked words to a shift of each word for each of its fields.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %v = tile.unpack %w bits 4 : tensor<8xi32> -> tensor<64xi8>
// After:  %all = tile.broadcast (tile.reshape %w to 8x1) : tensor<8x8xi32>
//         %fields = arith.andi (arith.shrui %all, [0, 4, 8, ...]), 15
//         %v = tile.reshape (arith.trunci %fields) : tensor<64xi8>
//
// On entry: any verified kernel without layouts.
// On exit: no tile.unpack is left.
#include "dialect/tile/transforms/ExpandUnpacks.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kpkg::tile {
#define GEN_PASS_DEF_TILEEXPANDUNPACKS
#include "dialect/tile/transforms/Passes.h.inc"

using namespace mlir;

namespace {
Value constantOf(OpBuilder &builder, Location loc, RankedTensorType type, int64_t value) {
  auto element = builder.getIntegerAttr(type.getElementType(), value);
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, Attribute(element)));
}

/// Returns the f32 numbers that fields of 4 bits, in i8, mean as floats.
Value floatsOf(OpBuilder &builder, Location loc, Value fields) {
  auto tile = cast<RankedTensorType>(fields.getType());
  RankedTensorType ofWords = tile.clone(builder.getI32Type()), ofFloats = tile.clone(builder.getF32Type());
  constexpr int64_t doubles = 0xc8643210; // Twice each magnitude, in 4 bits.
  Value all = arith::ExtUIOp::create(builder, loc, ofWords, fields);
  auto masked = [&](Value value, int64_t mask) -> Value {
    return arith::AndIOp::create(builder, loc, value, constantOf(builder, loc, ofWords, mask));
  };
  auto shiftedUp = [&](Value value, int64_t count) -> Value {
    return arith::ShLIOp::create(builder, loc, value, constantOf(builder, loc, ofWords, count));
  };
  Value place = shiftedUp(masked(all, 7), 2), sign = shiftedUp(masked(all, 8), 28);
  Value whole = masked(
      arith::ShRUIOp::create(builder, loc, constantOf(builder, loc, ofWords, int64_t(int32_t(doubles))), place), 15);
  Value half = arith::ConstantOp::create(builder, loc,
                                         DenseElementsAttr::get(ofFloats, Attribute(builder.getF32FloatAttr(0.5f))));
  Value magnitude = arith::MulFOp::create(builder, loc, arith::SIToFPOp::create(builder, loc, ofFloats, whole), half);
  Value bits = arith::BitcastOp::create(builder, loc, ofWords, magnitude);
  return arith::BitcastOp::create(builder, loc, ofFloats, arith::OrIOp::create(builder, loc, bits, sign));
}

Value expanded(UnpackOp op) {
  OpBuilder builder(op);
  Location loc = op.getLoc();
  auto words = cast<RankedTensorType>(op.getValue().getType()), result = cast<RankedTensorType>(op.getType());
  int64_t bits = op.getBits(), fields = op.getFields();
  SmallVector<int64_t> shape(words.getShape());
  shape.push_back(1);
  Value value = ReshapeOp::create(builder, loc, words.clone(shape), op.getValue());
  shape.back() = fields;
  auto all = words.clone(shape);
  value = BroadcastOp::create(builder, loc, all, value);
  SmallVector<int64_t> line(shape.size(), 1);
  line.back() = fields;
  RankedTensorType ofLine = words.clone(line);
  Value number = ReshapeOp::create(builder, loc, RankedTensorType::get(line, builder.getIndexType()),
                                   IotaOp::create(builder, loc, fields));
  Value shift = arith::MulIOp::create(builder, loc, arith::IndexCastOp::create(builder, loc, ofLine, number),
                                      constantOf(builder, loc, ofLine, bits));
  value = arith::ShRUIOp::create(builder, loc, value, BroadcastOp::create(builder, loc, all, shift));
  value = arith::AndIOp::create(builder, loc, value, constantOf(builder, loc, all, (int64_t(1) << bits) - 1));
  auto narrow = RankedTensorType::get(shape, builder.getI8Type());
  if (all != narrow)
    value = arith::TruncIOp::create(builder, loc, narrow, value);
  if (op.getIsSigned()) {
    // Flips the sign bit and subtracts its value, which extends the sign.
    Value sign = constantOf(builder, loc, narrow, int64_t(1) << (bits - 1));
    value = arith::SubIOp::create(builder, loc, arith::XOrIOp::create(builder, loc, value, sign), sign);
  }
  value = ReshapeOp::create(builder, loc, result.clone(builder.getI8Type()), value);
  if (op.getIsFloat()) {
    value = floatsOf(builder, loc, value);
    return result == value.getType() ? value : arith::TruncFOp::create(builder, loc, result, value).getResult();
  }
  if (isa<FloatType>(result.getElementType()))
    value = arith::SIToFPOp::create(builder, loc, result, value);
  return value;
}

struct TileExpandUnpacks final : impl::TileExpandUnpacksBase<TileExpandUnpacks> {
  void runOnOperation() override { expandUnpacks(getOperation()); }
};
} // namespace

void expandUnpacks(KernelOp kernel) {
  kernel.walk([](UnpackOp op) {
    op.replaceAllUsesWith(expanded(op));
    op.erase();
  });
}
} // namespace kpkg::tile
