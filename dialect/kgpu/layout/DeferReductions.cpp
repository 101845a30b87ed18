// Defers the exchange of a sum between lanes until after the loop that carries the sum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Before: %t = scf.for ... iter_args(%sum = zeros) {   // four lanes share a row
//           %s = tile.dot ...;  %r = tile.reduce sum %p axis 1 : tensor<128x128xf32, #acc> -> tensor<128x1xf32, #rows>
//           scf.yield %sum * %keep + %r : tensor<128x1xf32, #rows>
//         }
// After:  %parts = scf.for ... iter_args(%sum = zeros) {
//           %s = tile.dot ...;  %own = ... reduce sum of what each lane has of %p ... : tensor<128x4xf32, #lanes>
//           scf.yield %sum * broadcast(%keep) + %own : tensor<128x4xf32, #lanes>
//         }
//         %t = tile.reduce sum %parts axis 1 : tensor<128x4xf32, #lanes> -> tensor<128x1xf32, #rows>
//
// On entry: every tile has a layout.
// On exit: in loops with products, matching carried sums have one element for each lane. A sum matches if its elements
// are floats, it starts at zero, and each iteration adds a reduction to it. Before that it may be multiplied by a
// factor for each row.
//
// Lanes must divide the axis into powers of two. Warps may hold consecutive parts of the axis, for example if
// warpgroups share the columns of a product. Then lanes of each warp have elements of their own.
#include "dialect/kgpu/Passes.h"
#include "dialect/kgpu/ir/Constants.h"
#include "dialect/kgpu/ir/ConvertLayout.h"
#include "dialect/kgpu/ir/Remarks.h"
#include "dialect/kgpu/layout/CarriedSums.h"
#include "dialect/layout/Algebra.h"

using namespace mlir;

namespace kpkg::kgpu {
#define GEN_PASS_DEF_KGPUDEFERREDUCTIONS
#include "dialect/kgpu/Passes.h.inc"

namespace {
using layout::Layout;
using layout::Part;

struct CarriedSum {
  unsigned number; ///< the index of the loop's carried value
  arith::AddFOp step;
  arith::MulFOp scaling; ///< null, or a multiplication of the carried value before the addition
  Value factor;          ///< the other factor of `scaling`
  tile::ReduceOp reduce;
  SmallVector<int64_t> split; ///< its shape, the axis split into warps (if `hasWarps`), above, lanes, below
  bool hasWarps = false;
  Layout apart, parts;   ///< layouts of that tile, and of the new carried value
  RankedTensorType type; ///< type of the new carried value
};

/// Removes the two dimensions next to `axis`, the dimension of lanes. Returns nothing if lanes, warps or CTAs move
/// along them.
std::optional<Layout> withoutNeighbours(Layout layout, unsigned axis) {
  for (unsigned dim : {axis + 1, axis - 1}) {
    for (Part part : {Part::Lane, Part::Warp, Part::Block})
      if (layout.bitsAlong(part, dim) != 0)
        return std::nullopt;
    layout = layout::removeDim(llvm::cantFail(layout::slice(layout, dim)), dim);
  }
  return layout;
}

/// `count` lanes or warps, each with `step` adjacent elements along an axis.
struct Run {
  int64_t step = 0, count = 1;
};

/// Returns the run of lanes, or of warps, along the axis; nothing if they form no single run.
std::optional<Run> runOf(const Layout &layout, Part part, unsigned axis) {
  Run run;
  for (const Layout::Basis &basis : layout.bases(part))
    if (basis[axis] != 0) {
      run.step = run.step == 0 ? basis[axis] : run.step;
      if (basis[axis] != run.step * run.count)
        return std::nullopt;
      run.count *= 2;
    }
  return run;
}

/// Returns the sum over an axis that each iteration adds to a carried value; null if there is none.
tile::ReduceOp addedSum(scf::ForOp loop, unsigned number) {
  auto step = loop.getYieldedValues()[number].getDefiningOp<arith::AddFOp>();
  if (!step || step->getBlock() != loop.getBody())
    return {};
  auto reduce = step.getRhs().getDefiningOp<tile::ReduceOp>();
  if (!reduce)
    reduce = step.getLhs().getDefiningOp<tile::ReduceOp>();
  return reduce && reduce.getKind() == tile::ReduceKind::Sum ? reduce : tile::ReduceOp();
}

/// Finds the ops of an iteration that change a carried sum; the layouts of the result are not set yet.
ResultOrWhy<CarriedSum> findStep(scf::ForOp loop, unsigned number, tile::ReduceOp reduce) {
  BlockArgument carried = loop.getRegionIterArg(number);
  auto isPart = [&](Value value) { return value.getParentBlock() == loop.getBody() && value.hasOneUse(); };
  auto step = loop.getYieldedValues()[number].getDefiningOp<arith::AddFOp>();
  if (!isa<RankedTensorType>(carried.getType()) || !isZero(loop.getInitArgs()[number]))
    return Refusal{"the sum does not begin at zero"};
  if (!carried.hasOneUse() || !isPart(step) || !isPart(reduce))
    return Refusal{"an iteration reads the sum for other purposes too"};
  Value before = step.getRhs() == reduce.getResult() ? step.getLhs() : step.getRhs();
  CarriedSum sum{number, step, {}, {}, reduce, {}, false, layoutOf(reduce.getValue()), layoutOf(reduce.getValue()), {}};
  if (before != carried) {
    sum.scaling = before.getDefiningOp<arith::MulFOp>();
    if (!sum.scaling || !isPart(sum.scaling) || !llvm::is_contained(sum.scaling->getOperands(), carried))
      return Refusal{"an iteration does more with the sum than scale it and add to it"};
    sum.factor = sum.scaling.getLhs() == carried ? sum.scaling.getRhs() : sum.scaling.getLhs();
  }
  return sum;
}

ResultOrWhy<CarriedSum> find(scf::ForOp loop, unsigned number, tile::ReduceOp reduce) {
  ResultOrWhy<CarriedSum> found = findStep(loop, number, reduce);
  if (!found)
    return found;
  CarriedSum sum = *found;
  auto type = cast<RankedTensorType>(reduce.getValue().getType());
  unsigned axis = reduce.getAxis();
  const Layout layout = layoutOf(type);
  ArrayRef<int64_t> shape = type.getShape();
  std::optional<Run> ofLanes = runOf(layout, Part::Lane, axis), ofWarps = runOf(layout, Part::Warp, axis);
  if (ofLanes && ofLanes->count == 1)
    return Refusal{"no lanes of a warp share a row, so that they exchange nothing"};
  const Refusal scattered{"threads do not hold adjacent parts of a row"};
  if (!ofLanes || !ofWarps || layout.bitsAlong(Part::Block, axis) != 0)
    return scattered;
  int64_t below = ofLanes->step, lanes = ofLanes->count, warps = ofWarps->count;
  sum.hasWarps = warps > 1;
  // Measured only with consumer warpgroups.
  if (sum.hasWarps && getLaunch(loop->getParentOfType<tile::KernelOp>()).consumers == 0)
    return Refusal{"several warps share a row, and no warpgroups compute the products"};
  if (shape[axis] % (below * lanes * warps) != 0 || (sum.hasWarps && ofWarps->step * warps != shape[axis]))
    return scattered;
  sum.split.assign(shape.begin(), shape.end());
  sum.split[axis] = shape[axis] / (below * lanes * warps);
  sum.split.insert(sum.split.begin() + axis + 1, {lanes, below});
  if (sum.hasWarps)
    sum.split.insert(sum.split.begin() + axis, warps);
  std::optional<Layout> apart = llvm::expectedToOptional(layout::reshape(layout, shape, sum.split)), parts;
  if (apart)
    parts = withoutNeighbours(*apart, axis + 1 + sum.hasWarps);
  if (!parts)
    return scattered;
  SmallVector<int64_t> held(shape);
  held[axis] = warps * lanes;
  if (sum.hasWarps) {
    SmallVector<int64_t> separate(held);
    separate[axis] = warps;
    separate.insert(separate.begin() + axis + 1, lanes);
    parts = llvm::expectedToOptional(layout::reshape(*parts, separate, held));
    if (!parts)
      return scattered;
  }
  sum.apart = *apart;
  sum.parts = *parts;
  sum.type = withLayout(RankedTensorType::get(held, type.getElementType()), *parts);
  return sum;
}

/// Sums the elements of the reduced tile that each lane holds.
Value ownSum(OpBuilder &builder, CarriedSum sum) {
  Location loc = sum.reduce.getLoc();
  Type element = sum.type.getElementType();
  unsigned axis = sum.reduce.getAxis();
  SmallVector<int64_t> shape(sum.split);
  Layout layout = sum.apart;
  Value value = tile::ReshapeOp::create(builder, loc, withLayout(RankedTensorType::get(shape, element), layout),
                                        sum.reduce.getValue());
  for (unsigned dim : {axis + 2 + sum.hasWarps, axis + sum.hasWarps}) {
    shape[dim] = 1;
    layout = llvm::cantFail(layout::slice(layout, dim));
    value = tile::ReduceOp::create(builder, loc, withLayout(RankedTensorType::get(shape, element), layout),
                                   tile::ReduceKind::Sum, value, dim);
  }
  return tile::ReshapeOp::create(builder, loc, sum.type, value);
}

void defer(scf::ForOp loop, CarriedSum sum) {
  BlockArgument carried = loop.getRegionIterArg(sum.number);
  Location loc = sum.reduce.getLoc();
  auto rowType = cast<RankedTensorType>(carried.getType());
  unsigned axis = sum.reduce.getAxis();
  Layout rows = llvm::cantFail(layout::slice(sum.parts, axis));
  OpBuilder builder(sum.step);
  Value own = ownSum(builder, sum), before = carried;
  setCarriedType(loop, sum.number, sum.type);
  if (sum.scaling) {
    Value factor = tile::BroadcastOp::create(builder, loc, sum.type, converted(builder, loc, sum.factor, rows));
    before = arith::MulFOp::create(builder, loc, carried, factor);
  }
  Value next = arith::AddFOp::create(builder, loc, before, own);
  loop.getBody()->getTerminator()->setOperand(sum.number, next);
  for (Operation *op : {sum.step.getOperation(), sum.scaling.getOperation(), sum.reduce.getOperation()})
    if (op)
      op->erase();
  Value result = loop.getResult(sum.number);
  builder.setInsertionPointAfter(loop);
  auto whole = tile::ReduceOp::create(builder, loc, withLayout(rowType, rows), tile::ReduceKind::Sum, result, axis);
  Value laidOut = converted(builder, loc, whole, layoutOf(rowType));
  result.replaceAllUsesExcept(laidOut, whole);
}

constexpr Optimisation kDefer{"kgpu-defer-reductions", "sum exchanged after the loop"};

struct DeferReductions final : impl::KgpuDeferReductionsBase<DeferReductions> {
  void runOnOperation() override {
    getOperation().walk([](scf::ForOp loop) {
      if (loop.getBody()->getOps<tile::DotOp>().empty())
        return;
      for (unsigned number = 0; number < loop.getNumRegionIterArgs(); ++number) {
        tile::ReduceOp reduce = addedSum(loop, number);
        if (!reduce)
          continue;
        ResultOrWhy<CarriedSum> sum = find(loop, number, reduce);
        if (!sum) {
          remarkRefused(reduce, kDefer, sum.why());
          continue;
        }
        remarkApplied(reduce, kDefer, "lanes exchange their parts once, after the loop");
        defer(loop, *sum);
      }
    });
  }
};
} // namespace
} // namespace kpkg::kgpu
