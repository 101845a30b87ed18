// Rewrites dots with a 2:4 sparse left operand to dense dots.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.dot %v, %b, %c at %p : tensor<64x32xf16>, tensor<64x8xf16>, tensor<64x8xf32>, tensor<64x4xi16>
// After:  %u = %v at the columns of %p, else 0 : tensor<64x16x4x2xf16>
//         %w = the sums of %u over its last dimension : tensor<64x64xf16>
//         tile.dot %w, %b, %c : tensor<64x64xf16>, tensor<64x8xf16>, tensor<64x8xf32>
//
// On entry: any verified kernel without layouts.
// On exit: no tile.dot has positions.
//
// For targets without sparse matrix products.
#include "dialect/tile/transforms/DensifyDots.h"
#include "dialect/tile/transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace kpkg::tile {
#define GEN_PASS_DEF_TILEDENSIFYDOTS
#include "dialect/tile/transforms/Passes.h.inc"

using namespace mlir;

namespace {
/// Builds tiles of a few shapes.
struct Tiles {
  OpBuilder builder;
  Location loc;

  Value shaped(Value tile, ArrayRef<int64_t> shape) {
    return ReshapeOp::create(builder, loc, RankedTensorType::get(shape, getElementTypeOrSelf(tile.getType())), tile);
  }
  Value wide(Value tile, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, getElementTypeOrSelf(tile.getType()));
    return type == tile.getType() ? tile : BroadcastOp::create(builder, loc, type, tile).getResult();
  }
  Value all(int64_t value, ArrayRef<int64_t> shape) {
    auto type = RankedTensorType::get(shape, builder.getI16Type());
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, builder.getI16IntegerAttr(int16_t(value))));
  }
  /// Returns 0, 1, 2, ... along `dim`.
  Value counting(int64_t extent, unsigned dim) {
    SmallVector<int64_t> shape(4, 1);
    shape[dim] = extent;
    Value numbers = IotaOp::create(builder, loc, extent);
    return arith::IndexCastOp::create(builder, loc, RankedTensorType::get(shape, builder.getI16Type()),
                                      shaped(numbers, shape));
  }
};

/// Returns the left operand with all of its elements. The code uses separate dimensions for rows, groups of four
/// columns, columns of a group, and kept elements of a group.
Value denseFactor(DotOp dot) {
  Tiles tiles{OpBuilder(dot), dot.getLoc()};
  OpBuilder &builder = tiles.builder;
  Location loc = dot.getLoc();
  auto kept = cast<RankedTensorType>(dot.getLhs().getType());
  constexpr int64_t columns = 4, count = 2, groupsOfWord = 4;
  int64_t rows = kept.getDimSize(0), groups = kept.getDimSize(1) / count;
  SmallVector<int64_t> all = {rows, groups, columns, count}, each = {rows, groups, 1, count};
  Value words = tiles.wide(tiles.shaped(dot.getPositions(), {rows, groups / groupsOfWord, 1, 1}),
                           {rows, groups / groupsOfWord, groupsOfWord, 1});
  words = tiles.wide(tiles.shaped(words, {rows, groups, 1, 1}), each);
  // In a word, element e of group g has the two bits from 4 * (g % 4) + 2 * e on.
  SmallVector<int64_t> line = {1, groups, 1, 1};
  Value group = arith::AndIOp::create(builder, loc, tiles.counting(groups, 1), tiles.all(groupsOfWord - 1, line));
  Value first = tiles.wide(arith::ShLIOp::create(builder, loc, group, tiles.all(2, line)), {1, groups, 1, count});
  SmallVector<int64_t> pair = {1, 1, 1, count};
  Value second = tiles.wide(arith::ShLIOp::create(builder, loc, tiles.counting(count, 3), tiles.all(1, pair)),
                            {1, groups, 1, count});
  Value shift = tiles.wide(arith::AddIOp::create(builder, loc, first, second), each);
  Value place = arith::AndIOp::create(builder, loc, arith::ShRUIOp::create(builder, loc, words, shift),
                                      tiles.all(columns - 1, each));
  Value column = tiles.wide(tiles.counting(columns, 2), all);
  Value stands = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, tiles.wide(place, all), column);
  Value value = tiles.wide(tiles.shaped(dot.getLhs(), each), all);
  Value zero = arith::ConstantOp::create(builder, loc,
                                         DenseElementsAttr::get(RankedTensorType::get(all, kept.getElementType()),
                                                                builder.getFloatAttr(kept.getElementType(), 0)));
  Value spread = arith::SelectOp::create(builder, loc, stands, value, zero);
  return tiles.shaped(ReduceOp::create(builder, loc, ReduceKind::Sum, spread, 3), {rows, groups * columns});
}

struct TileDensifyDots final : impl::TileDensifyDotsBase<TileDensifyDots> {
  void runOnOperation() override { densifyDots(getOperation()); }
};
} // namespace

void densifyDots(KernelOp kernel) {
  kernel.walk([](DotOp dot) {
    if (!dot.getPositions())
      return;
    dot.getLhsMutable().assign(denseFactor(dot));
    dot.getPositionsMutable().clear();
  });
}
} // namespace kpkg::tile
