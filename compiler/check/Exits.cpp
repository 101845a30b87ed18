// Represents early returns, breaks and continues as Bool variables, since HIR has no jumps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"

namespace kpkg::compiler {

Elaborator::ExitFlag Elaborator::newFlag() {
  ExitFlag flag;
  flag.start = emit(Kind::Nothing, types.none, {});
  return flag;
}

static void becomeSet(hir::Node &node, hir::Local *local, bool value) {
  node.kind = hir::Kind::Set;
  node.local = local;
  node.value = Value(value);
}

void Elaborator::exitHere(ExitFlag &flag) {
  if (!flag.local) {
    flag.sites.push_back(block);
    return;
  }
  becomeSet(*emit(Kind::Nothing, types.none, {}), flag.local, true);
}

hir::Local *Elaborator::need(ExitFlag &flag) {
  if (flag.local)
    return flag.local;
  flag.local = newLocal("exit", types.boolean());
  becomeSet(*flag.start, flag.local, false);
  hir::Block *current = block;
  for (hir::Block *site : flag.sites) {
    block = site;
    becomeSet(*emit(Kind::Nothing, types.none, {}), flag.local, true);
  }
  block = current;
  return flag.local;
}

Flow Elaborator::guarded(const std::function<Flow()> &rest, SourceRange range) {
  ExitFlag &flag = frame->loops.empty() ? frame->returned : frame->loops.back()->skip;
  Node *left = getLocal(need(flag), range);
  Node *goesOn = emit(Kind::Not, types.boolean(), range, {left});
  Node *test = emit(Kind::If, types.none, range, {goesOn});
  // In the list of nodes, the If must precede the contents of its regions, which are filled now.
  Flow flow = Flow::Normal;
  test->regions.push_back(std::make_unique<hir::Block>());
  test->regions.push_back(std::make_unique<hir::Block>());
  hir::Block *outer = block;
  block = test->regions[0].get();
  flow = rest();
  block = outer;
  return flow == Flow::Exits || flow == Flow::Stops ? Flow::Exits : Flow::Maybe;
}

void collectAssigned(const ast::Block &block, std::set<std::string> &names) {
  std::function<void(const ast::Expr &)> target = [&](const ast::Expr &expr) {
    if (auto *name = expr.as<ast::NameExpr>())
      names.insert(name->name);
    else if (auto *index = expr.as<ast::IndexExpr>())
      target(*index->base);
    else if (auto *attribute = expr.as<ast::AttributeExpr>())
      target(*attribute->base);
    else if (auto *tuple = expr.as<ast::TupleExpr>())
      for (const ast::ExprPtr &element : tuple->elements)
        target(*element);
  };
  for (const ast::StmtPtr &stmt : block) {
    if (auto *assignment = stmt->as<ast::AssignStmt>())
      target(*assignment->target);
    else if (auto *augmented = stmt->as<ast::AugmentedStmt>())
      target(*augmented->target);
    else if (auto *expr = stmt->as<ast::ExprStmt>()) {
      // `list.append(x)` assigns to the list.
      auto *call = expr->value->as<ast::CallExpr>();
      auto *method = call ? call->callee->as<ast::AttributeExpr>() : nullptr;
      if (method && method->attribute.text == "append")
        target(*method->base);
    } else if (auto *branches = stmt->as<ast::IfStmt>()) {
      for (const auto &branch : branches->branches)
        collectAssigned(branch.body, names);
      if (branches->elseBody)
        collectAssigned(*branches->elseBody, names);
    } else if (auto *loop = stmt->as<ast::ForStmt>()) {
      collectAssigned(loop->body, names);
    } else if (auto *repeat = stmt->as<ast::WhileStmt>()) {
      collectAssigned(repeat->body, names);
    }
  }
}

/// Returns whether there is a `return`, or a `break` outside inner loops.
static bool hasExit(const ast::Block &block, bool inInnerLoop) {
  for (const ast::StmtPtr &stmt : block) {
    if (stmt->is<ast::ReturnStmt>() || (!inInnerLoop && stmt->is<ast::BreakStmt>()))
      return true;
    if (auto *branches = stmt->as<ast::IfStmt>()) {
      for (const auto &branch : branches->branches)
        if (hasExit(branch.body, inInnerLoop))
          return true;
      if (branches->elseBody && hasExit(*branches->elseBody, inInnerLoop))
        return true;
    } else if (auto *loop = stmt->as<ast::ForStmt>()) {
      if (hasExit(loop->body, true))
        return true;
    } else if (auto *repeat = stmt->as<ast::WhileStmt>()) {
      if (hasExit(repeat->body, true))
        return true;
    }
  }
  return false;
}

bool returnsValue(const ast::Block &block) {
  for (const ast::StmtPtr &stmt : block) {
    if (auto *result = stmt->as<ast::ReturnStmt>(); result && result->value)
      return true;
    if (auto *branches = stmt->as<ast::IfStmt>()) {
      for (const auto &branch : branches->branches)
        if (returnsValue(branch.body))
          return true;
      if (branches->elseBody && returnsValue(*branches->elseBody))
        return true;
    } else if (auto *loop = stmt->as<ast::ForStmt>(); loop && returnsValue(loop->body)) {
      return true;
    } else if (auto *repeat = stmt->as<ast::WhileStmt>(); repeat && returnsValue(repeat->body)) {
      return true;
    }
  }
  return false;
}

bool mayStop(const ast::Block &block) { return hasExit(block, false); }

bool hasReturn(const ast::Block &block) { return hasExit(block, true); }

} // namespace kpkg::compiler
