// Merges nested loops around a product whose operands are copied ahead into one loop.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: scf.for %i = 0 to %a step 1 iter_args(%s = %zeros) {
//           scf.for %j = 0 to %b step 1 iter_args(%t = %s) { ... tile.dot %x, %y, %t } }
// After:  scf.for %n = 0 to %a * %b step 1 iter_args(%s = %zeros, %i = 0, %j = 0) {
//           ... tile.dot %x, %y, %s; counts %j, then %i, on }
//
// On entry: a configured and scheduled kernel at tile level.
// On exit: a loop that does nothing but run an inner loop with one product is merged with it. The inner bounds must
// not depend on the outer loop. The kernel has consumer warpgroups, or the product is one of mma.sync that reads
// gathered rows.
//
// Products of all iterations can then be in flight one after another, and an accumulator starts at zero at one place.
// Loops with several products stay nested: each product waits for another one anyway, and the counters would only take
// registers.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/analysis/DotLayout.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/tile/transforms/RowGathers.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUMERGELOOPS
#include "dialect/kgpu/Passes.h.inc"

namespace {
bool countsFromZero(scf::ForOp loop) {
  return matchPattern(loop.getLowerBound(), m_Zero()) && matchPattern(loop.getStep(), m_One());
}

/// Returns the loop that `outer` repeats, if `outer` does nothing else that has an effect. The inner loop must take
/// and yield the carried values in the same order.
ResultOrWhy<scf::ForOp> onlyLoopIn(scf::ForOp outer) {
  scf::ForOp inner;
  for (Operation &op : outer.getBody()->without_terminator()) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (inner)
        return Refusal{"the outer loop runs two loops"};
      inner = loop;
    } else if (inner || op.getNumRegions() != 0 || !isMemoryEffectFree(&op)) {
      return Refusal{"the outer loop does more than run the inner one"};
    }
  }
  if (!inner)
    return Refusal{"it has no loop in it"};
  if (!countsFromZero(outer) || !countsFromZero(inner))
    return Refusal{"a loop does not count from 0 by 1"};
  if (!outer.isDefinedOutsideOfLoop(inner.getUpperBound()))
    return Refusal{"the inner loop's bound depends on the outer loop"};
  if (!llvm::equal(inner.getInitArgs(), outer.getRegionIterArgs()) ||
      !llvm::equal(outer.getYieldedValues(), inner.getResults()))
    return Refusal{"the outer loop carries other values than the inner one"};
  return inner;
}

unsigned productsIn(scf::ForOp loop) {
  unsigned products = 0;
  loop.walk([&](tile::DotOp) { ++products; });
  return products;
}

bool isInnermost(scf::ForOp loop) {
  return !loop.getBody()->walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

constexpr Optimisation kMerging{"kgpu-merge-loops", "nested loops as one"};

class Nest {
public:
  explicit Nest(scf::ForOp outermost) {
    for (scf::ForOp loop = outermost; loop; loop = onlyLoopIn(loop).toOptional().value_or(scf::ForOp()))
      if (!loops.empty() &&
          !llvm::all_of(loops, [&](scf::ForOp around) { return around.isDefinedOutsideOfLoop(loop.getUpperBound()); }))
        break;
      else
        loops.push_back(loop);
  }

  void merge() {
    if (loops.size() < 2)
      return;
    scf::ForOp outermost = loops.front(), innermost = loops.back();
    OpBuilder builder(outermost);
    Location loc = outermost.getLoc();
    zero = arith::ConstantIndexOp::create(builder, loc, 0);
    one = arith::ConstantIndexOp::create(builder, loc, 1);
    Value total;
    SmallVector<Value> start(outermost.getInitArgs());
    for (scf::ForOp loop : loops) {
      Value trips = arith::MaxSIOp::create(builder, loc, loop.getUpperBound(), zero);
      total = total ? arith::MulIOp::create(builder, loc, total, trips).getResult() : trips;
      start.push_back(zero);
    }
    auto merged = scf::ForOp::create(builder, loc, zero, total, one, start);
    ValueRange carried = merged.getRegionIterArgs().drop_back(loops.size()),
               counters = merged.getRegionIterArgs().take_back(loops.size());
    builder.setInsertionPointToEnd(merged.getBody());
    IRMapping mapping;
    for (auto [loop, counter] : llvm::zip(loops, counters)) {
      mapping.map(loop.getInductionVar(), counter);
      for (auto [old, now] : llvm::zip(loop.getRegionIterArgs(), carried))
        mapping.map(old, now);
      for (Operation &op : loop.getBody()->without_terminator())
        if (loop == innermost || !isa<scf::ForOp>(op))
          builder.clone(op, mapping);
    }
    SmallVector<Value> yielded =
        llvm::map_to_vector(innermost.getYieldedValues(), [&](Value value) { return mapping.lookupOrDefault(value); });
    yielded.append(next(builder, loc, counters));
    scf::YieldOp::create(builder, loc, yielded);
    outermost.replaceAllUsesWith(merged.getResults().drop_back(loops.size()));
    outermost.erase();
  }

private:
  /// Returns the counters of the next iteration: the innermost one advances, and each outer one when the next inner
  /// wraps.
  SmallVector<Value> next(OpBuilder &builder, Location loc, ValueRange counters) {
    SmallVector<Value> result(counters);
    Value passesOn;
    for (size_t i = loops.size(); i-- > 0;) {
      Value more = arith::AddIOp::create(builder, loc, counters[i], one);
      Value counted = passesOn ? arith::SelectOp::create(builder, loc, passesOn, more, counters[i]).getResult() : more;
      if (i == 0) {
        result[i] = counted;
        break;
      }
      passesOn = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, counted, loops[i].getUpperBound());
      result[i] = arith::SelectOp::create(builder, loc, passesOn, zero, counted);
    }
    return result;
  }

  SmallVector<scf::ForOp> loops; ///< outermost first
  Value zero, one;
};

/// Returns whether the loop's only product is one of mma.sync that reads gathered rows, which can be copied ahead.
bool gathersRows(scf::ForOp loop, const TargetModel &target) {
  auto isCopied = [&](Value operand) {
    if (auto permute = operand.getDefiningOp<tile::PermuteOp>())
      operand = permute.getValue();
    auto gather = operand.getDefiningOp<tile::GatherOp>();
    if (!gather || gather.getMask())
      return false;
    tile::ViewType view = gather.getView().getType();
    return tile::neighboursOf(view, gather.getIndices(), cast<RankedTensorType>(gather.getType()).getShape()) *
               view.getElementBytes() >=
           4;
  };
  bool found = false;
  loop.walk([&](tile::DotOp dot) {
    found = dotKind(dot, target) == DotKind::MmaSync && (isCopied(dot.getLhs()) || isCopied(dot.getRhs()));
  });
  return found && target.hasAsyncCopy;
}

/// Returns why a loop that only runs another loop is not merged with it.
std::string whyNotSuited(scf::ForOp loop) {
  return productsIn(loop) == 1 ? "no operand of its product is copied ahead"
                               : "it has several products, which wait for each other anyway";
}

struct MergeLoops final : impl::KgpuMergeLoopsBase<MergeLoops> {
  void runOnOperation() override {
    tile::KernelOp kernel = getOperation();
    bool hasConsumers = getLaunch(kernel).consumers != 0;
    auto suits = [&](scf::ForOp loop) {
      return productsIn(loop) == 1 && (hasConsumers || gathersRows(loop, targetOf(kernel)));
    };
    // Hoists loop-invariant code, such as bounds of inner loops. The walk visits inner loops first.
    kernel.walk([&](scf::ForOp loop) {
      if (suits(loop))
        moveLoopInvariantCode(loop);
    });
    SmallVector<scf::ForOp> outermost;
    kernel.walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
      ResultOrWhy<scf::ForOp> inner = onlyLoopIn(loop);
      if (inner && suits(loop)) {
        outermost.push_back(loop);
        return WalkResult::skip();
      }
      if (productsIn(loop) != 0 && !isInnermost(loop))
        remarkRefused(loop, kMerging, inner ? whyNotSuited(loop) : inner.why());
      return WalkResult::advance();
    });
    for (scf::ForOp loop : outermost) {
      remarkApplied(loop, kMerging, "operands are copied ahead across the ends of the inner loop");
      Nest(loop).merge();
    }
  }
};
} // namespace
} // namespace kpkg::kgpu
