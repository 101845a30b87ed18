// Assigns tiles to CTAs if one coordinate of a tile decides how long the tile takes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/launch/UnevenTiles.h"
#include "dialect/kgpu/ir/KgpuDialect.h"
#include "dialect/kgpu/launch/Arithmetic.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
class Dealer : Arithmetic {
public:
  Dealer(OpBuilder &builder, tile::ForTilesOp tiles, unsigned dim, ArrayRef<Value> counts)
      : Arithmetic{builder, tiles.getLoc()}, tiles(tiles), dim(dim), counts(counts) {}

  UnevenSchedule run() {
    splitLines();
    first = narrow(CtaIdOp::create(builder, loc));
    Value pairs = mul(arith::ShRUIOp::create(builder, loc, pairedLines, number(1)), length),
          singles = mul(otherLines, length);
    // In the last round of pairs only CTAs below `filled` take a pair. Each of the others takes one of the longest
    // single tiles instead.
    filled = rest(pairs, step);
    Value isFilled =
        arith::ExtUIOp::create(builder, loc, builder.getI32Type(), compare(arith::CmpIPredicate::slt, first, filled));
    pairTurns = mul(add(div(pairs, step), isFilled), number(2));
    singleTurns = sub(pairTurns, isFilled);
    Value places = add(singles, filled), whole = div(places, step);
    Value hasMore = compare(arith::CmpIPredicate::slt, placeIn(whole), rest(places, step));
    Value turns = add(add(singleTurns, whole), arith::ExtUIOp::create(builder, loc, builder.getI32Type(), hasMore));

    auto loop = scf::ForOp::create(builder, loc, number(0), turns, number(1));
    builder.setInsertionPointToStart(loop.getBody());
    Value turn = loop.getInductionVar();
    auto [pairLine, pairTile] = inPair(turn);
    auto [singleLine, singleTile] = single(sub(turn, singleTurns));
    Value isPair = compare(arith::CmpIPredicate::slt, turn, pairTurns);
    return {loop, coordinates(choose(isPair, pairLine, singleLine), choose(isPair, pairTile, singleTile))};
  }

  UnevenSchedule runInOrder(Value total) {
    splitLines();
    filled = mul(pairedLines, length);
    Value start = CtaIdOp::create(builder, loc), stride = CtaCountOp::create(builder, loc);
    auto loop = scf::ForOp::create(builder, loc, start, total, stride);
    builder.setInsertionPointToStart(loop.getBody());
    Value place = narrow(loop.getInductionVar());
    Value isEarly = compare(arith::CmpIPredicate::slt, place, filled), rank = sub(place, filled);
    Value line = choose(isEarly, div(place, length), add(pairedLines, rest(rank, otherLines)));
    Value depth = choose(isEarly, rest(place, length), div(rank, otherLines));
    return {loop, coordinates(line, fromLongest(depth))};
  }

private:
  /// Splits the lines into two groups. Tiles of the first lines are taken in pairs. The last lines have two to four
  /// rounds of tiles, which are taken longest first. The number of first lines is even, so no pair continues into the
  /// last ones.
  void splitLines() {
    // If lines are empty, there are no lines.
    length = arith::MaxSIOp::create(builder, loc, narrow(counts[dim]), number(1));
    Value lines = arith::MinSIOp::create(builder, loc, narrow(counts[dim]), number(1));
    for (unsigned other = 0; other < counts.size(); ++other)
      if (other != dim)
        lines = mul(lines, narrow(counts[other]));
    lastIsLonger = compare(arith::CmpIPredicate::sge, tripsAt(sub(counts[dim], index(1))), tripsAt(index(0)));
    step = narrow(CtaCountOp::create(builder, loc));
    Value round = mul(step, number(2));
    Value pairRounds = arith::MaxSIOp::create(builder, loc, sub(div(mul(lines, length), round), number(1)), number(0));
    pairedLines = arith::AndIOp::create(builder, loc, div(mul(pairRounds, round), length), number(-2));
    otherLines = sub(lines, pairedLines);
  }

  /// Returns the tile of a line at place `depth` in the order from longest to shortest.
  Value fromLongest(Value depth) { return choose(lastIsLonger, sub(sub(length, number(1)), depth), depth); }

  Value number(int64_t value) { return arith::ConstantIntOp::create(builder, loc, value, 32); }
  Value narrow(Value value) { return arith::IndexCastOp::create(builder, loc, builder.getI32Type(), value); }
  Value isOdd(Value value) {
    return compare(arith::CmpIPredicate::ne, arith::AndIOp::create(builder, loc, value, number(1)), number(0));
  }
  Value placeIn(Value round) { return choose(isOdd(round), sub(sub(step, number(1)), first), first); }

  /// Returns how often the loops of the tile at `place` of the first line run in all. Loops do not count if their
  /// bounds come from other loops or from memory.
  Value tripsAt(Value place) {
    IRMapping mapping;
    for (auto [coordinate, argument] : llvm::enumerate(tiles.getCoordinates()))
      mapping.map(argument, coordinate == dim ? place : index(0));
    Value sum = index(0);
    tiles.getBody().walk([&](scf::ForOp loop) {
      SetVector<Operation *> ops;
      BackwardSliceOptions options;
      options.omitBlockArguments = true;
      options.inclusive = true;
      options.filter = [&](Operation *op) { return tiles->isProperAncestor(op); };
      for (Value bound : {loop.getLowerBound(), loop.getUpperBound()})
        if (Operation *source = bound.getDefiningOp(); source && tiles->isProperAncestor(source))
          (void)getBackwardSlice(bound, &ops, options);
      auto isOutside = [&](Value operand) {
        Operation *source = operand.getDefiningOp();
        return mapping.contains(operand) || (source ? ops.contains(source) || !tiles->isProperAncestor(source)
                                                    : !tiles->isAncestor(operand.getParentBlock()->getParentOp()));
      };
      bool isArithmetic = llvm::all_of(ops, [&](Operation *op) {
        return op->getNumRegions() == 0 && isMemoryEffectFree(op) && llvm::all_of(op->getOperands(), isOutside);
      });
      if (!isArithmetic || !isOutside(loop.getLowerBound()) || !isOutside(loop.getUpperBound()))
        return;
      for (Operation *op : ops)
        builder.clone(*op, mapping);
      Value trips = sub(mapping.lookupOrDefault(loop.getUpperBound()), mapping.lookupOrDefault(loop.getLowerBound()));
      sum = add(sum, arith::MaxSIOp::create(builder, loc, trips, index(0)));
    });
    return sum;
  }

  /// Returns the line of the tile for a turn with pairs, and its place in the line: places n - 1, 0, n - 2, 1, ...
  std::pair<Value, Value> inPair(Value turn) {
    Value half = number(1);
    Value pair = add(mul(arith::ShRUIOp::create(builder, loc, turn, half), step), first);
    Value position = add(mul(pair, number(2)), arith::AndIOp::create(builder, loc, turn, number(1)));
    Value within = rest(position, length), depth = arith::ShRUIOp::create(builder, loc, within, half);
    return {div(position, length), choose(isOdd(within), depth, sub(sub(length, number(1)), depth))};
  }

  /// The same for single tiles, longest first: the longest tiles of all lines, then the next shorter ones.
  std::pair<Value, Value> single(Value round) {
    Value rank = sub(add(mul(round, step), placeIn(round)), filled);
    Value depth = div(rank, otherLines);
    return {add(pairedLines, rest(rank, otherLines)), fromLongest(depth)};
  }

  SmallVector<Value> coordinates(Value line, Value tile) {
    SmallVector<Value> result(counts.size());
    SmallVector<unsigned> others;
    for (unsigned other = 0; other < counts.size(); ++other)
      if (other != dim)
        others.push_back(other);
    for (size_t i = others.size(); i-- > 0;) {
      Value count = narrow(counts[others[i]]);
      result[others[i]] = i == 0 ? line : rest(line, count);
      line = i == 0 ? line : div(line, count);
    }
    result[dim] = tile;
    for (Value &value : result)
      value = arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
    return result;
  }

  tile::ForTilesOp tiles;
  unsigned dim;
  ArrayRef<Value> counts;
  Value length, first, step, pairedLines, otherLines, filled, pairTurns,
      singleTurns; ///< i32; `filled`: CTAs of the last round of pairs, or tiles of the first lines
  Value lastIsLonger;
};
} // namespace

bool decideTrips(tile::ForTilesOp tiles, ValueRange coordinates, bool throughMemory) {
  DenseSet<Value> known(coordinates.begin(), coordinates.end());
  auto depends = [&](Value value) { return known.contains(value); };
  bool found = false;
  tiles->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      found |= depends(loop.getLowerBound()) || depends(loop.getUpperBound());
    if (op->getNumRegions() == 0 && (throughMemory || isMemoryEffectFree(op)) &&
        llvm::any_of(op->getOperands(), depends))
      known.insert(op->result_begin(), op->result_end());
  });
  return found;
}

std::optional<unsigned> unevenCoordinate(tile::ForTilesOp tiles) {
  for (unsigned dim = tiles.getCoordinates().size(); dim-- > 0;)
    if (decideTrips(tiles, tiles.getCoordinates()[dim], /*throughMemory=*/false))
      return dim;
  return std::nullopt;
}

UnevenSchedule scheduleUneven(OpBuilder &builder, tile::ForTilesOp tiles, unsigned dim, ArrayRef<Value> counts) {
  return Dealer(builder, tiles, dim, counts).run();
}

UnevenSchedule orderUneven(OpBuilder &builder, tile::ForTilesOp tiles, unsigned dim, ArrayRef<Value> counts,
                           Value total) {
  return Dealer(builder, tiles, dim, counts).runInOrder(total);
}

} // namespace kpkg::kgpu
