// Computes, as an i1 value, whether a wgmma product adds to its accumulator or starts a new sum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/roles/Accumulators.h"
#include "dialect/kgpu/analysis/StreamedDots.h"
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "mlir/Dialect/UB/IR/UBOps.h"

using namespace mlir;

namespace kpkg::kgpu {

/// Handles an accumulator that nested loops carry and that starts at zero: the loops also carry whether a product has
/// run.
static Value whetherOuterAdds(IRRewriter &rewriter, tile::DotOp dot, BlockArgument argument) {
  Location loc = dot.getLoc();
  SmallVector<scf::ForOp> loops; // innermost first
  OpOperand *start = nullptr;
  for (BlockArgument carried = argument; carried; carried = dyn_cast<BlockArgument>(start->get())) {
    auto loop = dyn_cast<scf::ForOp>(carried.getOwner()->getParentOp());
    bool goesThrough =
        loop && carried.hasOneUse() &&
        (loops.empty() || loop.getTiedLoopYieldedValue(carried)->get() == loops.back().getTiedLoopResult(start));
    if (!goesThrough)
      return arith::ConstantIntOp::create(rewriter, loc, 1, 1);
    loops.push_back(loop);
    start = loop.getTiedLoopInit(carried);
  }
  if (!isZero(start->get()))
    return arith::ConstantIntOp::create(rewriter, loc, 1, 1);
  Value sum = loops.back().getTiedLoopResult(start), zeros = start->get();
  unsigned number = cast<OpResult>(sum).getResultNumber();
  rewriter.setInsertionPoint(loops.back());
  start->set(ub::PoisonOp::create(rewriter, loc, zeros.getType()));
  Value adds = arith::ConstantIntOp::create(rewriter, loc, 0, 1);
  for (scf::ForOp &loop : llvm::reverse(loops)) {
    loop = carryAlso(loop, adds);
    adds = loop.getRegionIterArgs().back();
  }
  Value came;
  for (scf::ForOp loop : loops) {
    Operation *yield = loop.getBody()->getTerminator();
    if (!came) {
      rewriter.setInsertionPoint(yield);
      came = arith::ConstantIntOp::create(rewriter, loc, 1, 1);
    }
    yieldLast(loop, came);
    came = loop.getResults().back();
  }
  // If the loops never run, the result is zero.
  rewriter.setInsertionPointAfter(loops.back());
  Value result = loops.back().getResult(number);
  auto chosen = arith::SelectOp::create(rewriter, loc, came, result, zeros);
  result.replaceAllUsesExcept(chosen, chosen);
  return adds;
}

Value whetherAdds(IRRewriter &rewriter, tile::DotOp dot) {
  Location loc = dot.getLoc();
  if (isZero(dot.getAccumulator())) {
    dot.getAccumulatorMutable().assign(ub::PoisonOp::create(rewriter, loc, dot.getType()));
    return arith::ConstantIntOp::create(rewriter, loc, 0, 1);
  }
  auto argument = dyn_cast<BlockArgument>(dot.getAccumulator());
  auto loop = argument ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp()) : scf::ForOp();
  if (!loop || dot->getBlock() != loop.getBody() || loop.getTiedLoopYieldedValue(argument)->get() != dot.getResult() ||
      !argument.hasOneUse())
    return arith::ConstantIntOp::create(rewriter, loc, 1, 1);
  if (!isZero(loop.getTiedLoopInit(argument)->get()))
    return whetherOuterAdds(rewriter, dot, argument);
  OpOperand *start = loop.getTiedLoopInit(argument);
  Value zeros = start->get();
  Value adds =
      arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::ne, loop.getInductionVar(), loop.getLowerBound());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(loop);
  start->set(ub::PoisonOp::create(rewriter, loc, zeros.getType()));
  // If the loop never runs, the result is zero.
  rewriter.setInsertionPointAfter(loop);
  Value result = loop.getTiedLoopResult(argument);
  Value runs =
      arith::CmpIOp::create(rewriter, loc, arith::CmpIPredicate::slt, loop.getLowerBound(), loop.getUpperBound());
  auto chosen = arith::SelectOp::create(rewriter, loc, runs, result, zeros);
  result.replaceAllUsesExcept(chosen, chosen);
  return adds;
}

} // namespace kpkg::kgpu
