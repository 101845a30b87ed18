// Checks `if` and `comptime if`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

static Flow joined(Flow a, Flow b) {
  if (a == Flow::Stops)
    return b;
  if (b == Flow::Stops)
    return a;
  return a == b ? a : Flow::Maybe;
}

static bool arrives(Flow flow) { return flow == Flow::Normal || flow == Flow::Maybe; }

Flow Elaborator::checkIf(const ast::IfStmt &stmt, size_t branch, const ast::Block &statements, size_t next,
                         bool &tookRest) {
  if (branch == stmt.branches.size())
    return stmt.elseBody ? checkBlock(*stmt.elseBody) : Flow::Normal;
  const auto &chosen = stmt.branches[branch];
  Operand tested = check(*chosen.condition);
  if (tested.constant && tested.constant->isBool()) // a comptime condition: the branch that is not taken is not checked
    return tested.constant->asBool() ? checkBlock(chosen.body) : checkIf(stmt, branch + 1, statements, next, tookRest);
  Node *test = condition(tested, chosen.condition->range);
  if (!test) { // reported already; both branches are still checked for their own errors
    apart([&] { checkBlock(chosen.body); });
    apart([&] { checkIf(stmt, branch + 1, statements, statements.size(), tookRest); });
    return Flow::Normal;
  }
  Node *node = emit(Kind::If, types.none, stmt.range, {test});
  node->regions.push_back(std::make_unique<hir::Block>());
  node->regions.push_back(std::make_unique<hir::Block>());
  hir::Block *outer = block;
  ValueRanges::State before = valueRanges.save();

  block = node->regions[0].get();
  valueRanges.assume(test, true);
  Flow thenFlow = checkBlock(chosen.body);
  ValueRanges::State afterThen = valueRanges.save();

  block = node->regions[1].get();
  valueRanges.restore(before);
  valueRanges.assume(test, false);
  bool hasRest = next < statements.size();
  bool elseTookRest = false;
  size_t restForElse = thenFlow == Flow::Exits ? next : statements.size();
  Flow elseFlow = checkIf(stmt, branch + 1, statements, restForElse, elseTookRest);
  if (!elseTookRest && hasRest && thenFlow == Flow::Exits && elseFlow == Flow::Normal) {
    elseFlow = checkFrom(statements, next);
    elseTookRest = true;
  }
  ValueRanges::State afterElse = valueRanges.save();
  if (!elseTookRest && hasRest && elseFlow == Flow::Exits && thenFlow == Flow::Normal) {
    block = node->regions[0].get();
    valueRanges.restore(afterThen);
    thenFlow = checkFrom(statements, next);
    afterThen = valueRanges.save();
    tookRest = true;
  }
  tookRest |= elseTookRest;
  block = outer;
  valueRanges.join(afterThen, arrives(thenFlow), afterElse, arrives(elseFlow));
  return joined(thenFlow, elseFlow);
}

Flow Elaborator::checkComptimeIf(const ast::IfStmt &stmt) {
  for (const auto &branch : stmt.branches) {
    auto chosen = comptime(*branch.condition);
    if (!chosen)
      return Flow::Normal;
    if (!chosen->isBool()) {
      diags.report(diag::ConditionNotBool, branch.condition->range, kindName(*chosen));
      return Flow::Normal;
    }
    if (chosen->asBool())
      return checkBlock(branch.body);
  }
  return stmt.elseBody ? checkBlock(*stmt.elseBody) : Flow::Normal;
}

} // namespace kpkg::compiler
