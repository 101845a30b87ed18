// Helpers for loops of roles that carry values: scf.for, and scf.while of the dynamic tile scheduler.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/kgpu/ir/CarryingLoop.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace kpkg::kgpu {
namespace {
/// Returns the comparison that decides whether the loop runs another iteration. Returns null if the region `before`
/// holds anything else, or does not forward all carried values to the body.
arith::CmpIOp testOf(scf::WhileOp loop) {
  Block &test = *loop.getBeforeBody();
  scf::ConditionOp condition = loop.getConditionOp();
  auto compare = condition.getCondition().getDefiningOp<arith::CmpIOp>();
  bool isAll = compare && compare->getBlock() == &test && llvm::hasNItems(test, 2) &&
               llvm::equal(condition.getArgs(), test.getArguments());
  return isAll ? compare : arith::CmpIOp();
}
} // namespace

CarryingLoop carryingLoop(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return {
        op, loop.getBody(), loop.getRegionIterArgs(), loop.getInitArgs(), loop.getYieldedValues(), loop.getResults()};
  auto loop = dyn_cast<scf::WhileOp>(op);
  if (!loop || !testOf(loop))
    return {};
  return {op,
          loop.getAfterBody(),
          loop.getAfterArguments(),
          loop.getInits(),
          loop.getYieldOp().getOperands(),
          loop.getResults()};
}

scf::ForOp carryAlso(scf::ForOp loop, ValueRange inits,
                     function_ref<SmallVector<Value>(OpBuilder &, ArrayRef<BlockArgument>)> yields) {
  IRRewriter rewriter(loop);
  FailureOr<LoopLikeOpInterface> carrying = loop.replaceWithAdditionalYields(
      rewriter, inits, /*replaceInitOperandUsesInLoop=*/false,
      [&](OpBuilder &builder, Location, ArrayRef<BlockArgument> arguments) { return yields(builder, arguments); });
  assert(succeeded(carrying) && "a loop of the scf dialect takes any number of values");
  return cast<scf::ForOp>(carrying->getOperation());
}

scf::ForOp carryAlso(scf::ForOp loop, Value init) {
  return carryAlso(loop, init,
                   [](OpBuilder &, ArrayRef<BlockArgument> arguments) { return SmallVector<Value>(arguments); });
}

void yieldLast(scf::ForOp loop, Value value) {
  Operation *yield = loop.getBody()->getTerminator();
  yield->setOperand(yield->getNumOperands() - 1, value);
}

std::optional<TakingLoop> takingLoop(scf::WhileOp loop) {
  arith::CmpIOp test = testOf(loop);
  if (!test || test.getPredicate() != arith::CmpIPredicate::slt || loop.getInits().empty() ||
      test.getLhs() != loop.getBeforeArguments().front())
    return std::nullopt;
  return TakingLoop{loop.getInits().front(), test.getRhs(), loop.getAfterArguments().front(),
                    loop.getYieldOp().getOperands().front()};
}

} // namespace kpkg::kgpu
