// Assigns tiles of an output to CTAs, and chooses the order in which each CTA takes them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: tile.for_tiles (%m, %n) to (%rows, %columns) { ... }
// After:  scf.for %t = kgpu.cta_id to %rows * %columns step kgpu.cta_count { %m, %n from %t ... }
//
// On entry: a configured kernel.
// On exit: no tile.for_tiles is left.
//
// The last coordinate runs fastest. In a kernel with a matrix product, tiles come in groups of several rows, down the
// columns of a group. Tiles that run at the same time then share rows of one operand and columns of the other in the
// L2 cache.
//
// The row or column of a tile with products may decide how often one of its loops runs. Then tiles are distributed so
// that all CTAs take equally long (UnevenTiles.h). If other coordinates or memory decide it, CTAs take tiles in turn
// from the first to the last and back. With `dynamic`, tiles have the same order without pairs and turns, for
// kgpu-dynamic-tiles.
//
// Clusters of a kernel with consumer warpgroups take tiles together that are adjacent along `clusterCoordinate`:
//   scf.for %t = kgpu.cluster_id to %rows * %pairs step kgpu.cta_count / 2 {
//     %m, %p from %t; %n = 2 * %p + kgpu.cluster_rank ... }
// The last tiles may lie outside of the output. Stores that would then write elsewhere are guarded by an scf.if.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/ClusterTiles.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/ir/Walks.h"
#include "dialect/kgpu/launch/Arithmetic.h"
#include "dialect/kgpu/launch/UnevenTiles.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUSCHEDULETILES
#include "dialect/kgpu/Passes.h.inc"

namespace {

constexpr Optimisation kOrder{"kgpu-schedule-tiles", "order of tiles"};

class Schedule : Arithmetic {
public:
  /// `shared` is the coordinate along which the CTAs of a cluster take adjacent tiles; none if CTAs take tiles alone.
  Schedule(OpBuilder &builder, tile::ForTilesOp op, std::optional<unsigned> shared, const Launch &launch)
      : Arithmetic{builder, op.getLoc()}, op(op), shared(shared), cluster(launch.cluster), isDynamic(launch.dynamic),
        heuristics(heuristicsOf(op->getParentOfType<tile::KernelOp>())) {}

  void run() {
    Value zero = index(0), total = index(1);
    SmallVector<Value> counts;
    for (Value count : op.getCounts()) {
      counts.push_back(arith::MaxSIOp::create(builder, loc, count, zero));
      if (shared && *shared + 1 == counts.size())
        counts.back() = arith::CeilDivSIOp::create(builder, loc, counts.back(), index(cluster));
      total = mul(total, counts.back());
    }
    bool isProduct = containsOp<tile::DotOp>(op);
    if (shared) {
      remarkApplied(op, kOrder, "the blocks of a cluster take adjacent tiles");
      return takeTogether(counts, total);
    }
    if (std::optional<unsigned> uneven = isProduct ? unevenCoordinate(op) : std::nullopt;
        uneven && *uneven + 2 >= counts.size()) {
      remarkApplied(op, kOrder, "by the number of iterations of a tile, so that all blocks take equally long");
      UnevenSchedule schedule =
          isDynamic ? orderUneven(builder, op, *uneven, counts, total) : scheduleUneven(builder, op, *uneven, counts);
      return moveInto(schedule.loop, schedule.coordinates);
    }
    if (decideTrips(op, op.getCoordinates().back(), /*throughMemory=*/true))
      groupRows = heuristics.unevenGroupRows;
    Value first = CtaIdOp::create(builder, loc), step = CtaCountOp::create(builder, loc);
    bool turns = !isDynamic && decideTrips(op, op.getCoordinates(), /*throughMemory=*/true),
         hasGroups = isProduct && counts.size() >= 2;
    if (turns)
      remarkApplied(op, kOrder, "each block takes tiles from the first to the last and back, since some take longer");
    if (hasGroups)
      remarkApplied(op, kOrder,
                    "tiles of " + llvm::Twine(groupRows) +
                        " rows follow each other, and share operands in "
                        "the L2 cache");
    auto [loop, number] = turns ? thereAndBack(first, step, total) : inTurn(first, step, total);
    moveInto(loop, hasGroups ? grouped(number, counts) : rowMajor(number, counts));
  }

private:
  void takeTogether(ArrayRef<Value> counts, Value total) {
    Value first = ClusterIdOp::create(builder, loc), step = div(CtaCountOp::create(builder, loc), index(cluster));
    auto [loop, number] = inTurn(first, step, total);
    SmallVector<Value> coordinates = counts.size() >= 2 ? grouped(number, counts) : rowMajor(number, counts);
    Value &coordinate = coordinates[*shared];
    coordinate = mul(coordinate, index(cluster));
    coordinate = add(coordinate, ClusterRankOp::create(builder, loc));
    SmallVector<Operation *> stores = storesOfNoTile(op, *shared);
    Value isTile = stores.empty() ? Value() : compare(arith::CmpIPredicate::slt, coordinate, op.getCounts()[*shared]);
    for (Operation *store : stores) {
      builder.setInsertionPoint(store);
      auto guard = scf::IfOp::create(builder, loc, isTile, /*withElseRegion=*/false);
      store->moveBefore(guard.thenBlock()->getTerminator());
    }
    moveInto(loop, coordinates);
  }

  void moveInto(scf::ForOp loop, ArrayRef<Value> coordinates) {
    Block &body = op.getBody().front();
    body.getTerminator()->erase();
    loop.getBody()->getOperations().splice(std::prev(loop.getBody()->end()), body.getOperations());
    for (auto [old, coordinate] : llvm::zip(op.getCoordinates(), coordinates))
      old.replaceAllUsesWith(coordinate);
    op.erase();
  }

  /// Creates a loop over the tiles of a CTA, and sets the insertion point inside. Also returns the number of the tile.
  std::pair<scf::ForOp, Value> inTurn(Value first, Value step, Value total) {
    auto loop = scf::ForOp::create(builder, loc, first, total, step);
    builder.setInsertionPointToStart(loop.getBody());
    return {loop, loop.getInductionVar()};
  }

  std::pair<scf::ForOp, Value> thereAndBack(Value first, Value step, Value total) {
    Value one = index(1), mirrored = sub(sub(step, one), first);
    auto placeIn = [&](Value round) {
      Value parity = arith::AndIOp::create(builder, loc, round, one);
      return choose(compare(arith::CmpIPredicate::ne, parity, index(0)), mirrored, first);
    };
    Value whole = div(total, step);
    Value hasMore = compare(arith::CmpIPredicate::ult, placeIn(whole), rest(total, step));
    Value rounds = add(whole, choose(hasMore, one, index(0)));
    auto loop = scf::ForOp::create(builder, loc, index(0), rounds, one);
    builder.setInsertionPointToStart(loop.getBody());
    Value round = loop.getInductionVar();
    return {loop, add(mul(round, step), placeIn(round))};
  }

  SmallVector<Value> rowMajor(Value number, ArrayRef<Value> counts) {
    SmallVector<Value> coordinates(counts.size());
    for (size_t dim = counts.size(); dim-- > 1; number = div(number, counts[dim]))
      coordinates[dim] = rest(number, counts[dim]);
    coordinates[0] = number;
    return coordinates;
  }

  SmallVector<Value> grouped(Value number, ArrayRef<Value> counts) {
    Value rows = counts[counts.size() - 2], columns = counts.back(), tiles = mul(rows, columns);
    SmallVector<Value> coordinates;
    if (counts.size() > 2) {
      coordinates = rowMajor(div(number, tiles), counts.drop_back(2));
      number = rest(number, tiles);
    }
    bool sharesRows = shared && *shared + 2 == counts.size();
    Value height = index(sharesRows ? groupRows / cluster : groupRows), area = mul(height, columns);
    Value firstRow = mul(div(number, area), height), left = sub(rows, firstRow);
    Value lines = arith::MinSIOp::create(builder, loc, left, height), within = rest(number, area);
    coordinates.push_back(add(firstRow, rest(within, lines)));
    coordinates.push_back(div(within, lines));
    return coordinates;
  }

  tile::ForTilesOp op;
  std::optional<unsigned> shared;
  unsigned cluster;
  bool isDynamic;
  const chips::Heuristics &heuristics;
  int64_t groupRows = heuristics.groupRows;
};

struct ScheduleTiles final : impl::KgpuScheduleTilesBase<ScheduleTiles> {
  void runOnOperation() override {
    Launch launch = getLaunch(getOperation());
    std::optional<unsigned> shared;
    if (launch.consumers != 0 && launch.cluster > 1) {
      shared = clusterCoordinate(getOperation(), getAnalysis<StreamedDots>().products, targetOf(getOperation()),
                                 launch.cluster);
      if (!shared) {
        getOperation().emitError() << "has clusters of " << launch.cluster
                                   << " CTAs, but no coordinate along which these share operands";
        return signalPassFailure();
      }
    }
    for (auto op : opsIn<tile::ForTilesOp>(getOperation())) {
      OpBuilder builder(op);
      Schedule(builder, op, shared, launch).run();
    }
  }
};
} // namespace
} // namespace kpkg::kgpu
