// Evaluates comptime function bodies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/comptime/EvalFrame.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

Evaluator::Flow Evaluator::run(const ast::Block &block, Frame &frame) {
  frame.open();
  Flow flow = Flow::Normal;
  for (const ast::StmtPtr &stmt : block)
    if (flow = run(*stmt, frame); flow != Flow::Normal)
      break;
  frame.close();
  return flow;
}

Evaluator::Flow Evaluator::runIf(const ast::IfStmt &stmt, Frame &frame) {
  for (const auto &branch : stmt.branches) {
    auto chosen = condition(*branch.condition, frame);
    if (!chosen)
      return Flow::Failed;
    if (*chosen)
      return run(branch.body, frame);
  }
  return stmt.elseBody ? run(*stmt.elseBody, frame) : Flow::Normal;
}

Evaluator::Flow Evaluator::runFor(const ast::ForStmt &stmt, Frame &frame) {
  auto iterable = evaluate(*stmt.iterable, frame);
  if (!iterable)
    return Flow::Failed;
  if (!iterable->isSequence()) {
    fail(stmt.iterable->range, "cannot iterate over " + kindName(*iterable));
    return Flow::Failed;
  }
  for (const Value &item : iterable->asSequence().items) {
    if (!step(stmt.iterable->range))
      return Flow::Failed;
    frame.open();
    if (stmt.targets.size() == 1) {
      frame.declare(stmt.targets[0].text, item);
    } else if (item.isSequence() && item.asSequence().items.size() == stmt.targets.size()) {
      for (size_t i = 0; i < stmt.targets.size(); ++i)
        frame.declare(stmt.targets[i].text, item.asSequence().items[i]);
    } else {
      fail(stmt.iterable->range, fmt::format("an item is {}, expected {} values", item.str(), stmt.targets.size()));
      return Flow::Failed;
    }
    Flow flow = run(stmt.body, frame);
    frame.close();
    if (flow == Flow::Break)
      break;
    if (flow == Flow::Return || flow == Flow::Failed)
      return flow;
  }
  return Flow::Normal;
}

Evaluator::Flow Evaluator::runWhile(const ast::WhileStmt &stmt, Frame &frame) {
  while (true) {
    auto holds = condition(*stmt.condition, frame);
    if (!holds)
      return Flow::Failed;
    if (!*holds)
      return Flow::Normal;
    Flow flow = run(stmt.body, frame);
    if (flow == Flow::Break)
      return Flow::Normal;
    if (flow == Flow::Return || flow == Flow::Failed)
      return flow;
  }
}

Evaluator::Flow Evaluator::assign(const ast::Expr &target, Value value, Frame &frame) {
  if (auto *name = target.as<ast::NameExpr>()) {
    if (Value *variable = frame.find(name->name)) {
      *variable = std::move(value);
      return Flow::Normal;
    }
    diags.report(diag::UnknownName, target.range, name->name);
    return Flow::Failed;
  }
  if (auto *tuple = target.as<ast::TupleExpr>();
      tuple && value.isSequence() && value.asSequence().items.size() == tuple->elements.size()) {
    for (size_t i = 0; i < tuple->elements.size(); ++i)
      if (assign(*tuple->elements[i], value.asSequence().items[i], frame) == Flow::Failed)
        return Flow::Failed;
    return Flow::Normal;
  }
  if (auto *attribute = target.as<ast::AttributeExpr>()) {
    auto base = evaluate(*attribute->base, frame);
    if (!base)
      return Flow::Failed;
    size_t field = base->isStruct() ? base->asStruct().structure->find(attribute->attribute.text) : 0;
    if (base->isStruct() && field < base->asStruct().members.size()) {
      auto changed = withField(*base, field, std::move(value), attribute->range);
      return changed ? assign(*attribute->base, std::move(*changed), frame) : Flow::Failed;
    }
  }
  fail(target.range, "cannot assign to this while compiling");
  return Flow::Failed;
}

Evaluator::Flow Evaluator::runCallStatement(const ast::Expr &expr, Frame &frame) {
  // `list.append(x)` changes the variable `list`. Every other call has no effect, but its limits apply.
  auto *call = expr.as<ast::CallExpr>();
  auto *method = call ? call->callee->as<ast::AttributeExpr>() : nullptr;
  auto *base = method ? method->base->as<ast::NameExpr>() : nullptr;
  Value *variable = base && method->attribute.text == "append" ? frame.find(base->name) : nullptr;
  if (!variable || !variable->isSequence() || call->arguments.size() != 1)
    return evaluate(expr, frame) ? Flow::Normal : Flow::Failed;
  auto value = evaluate(*call->arguments[0].value, frame);
  if (!value)
    return Flow::Failed;
  std::vector<Value> items = variable->asSequence().items;
  items.push_back(std::move(*value));
  *variable = Value::list(std::move(items));
  return Flow::Normal;
}

Evaluator::Flow Evaluator::runAssert(const ast::ComptimeAssertStmt &stmt, Frame &frame) {
  auto holds = condition(*stmt.condition, frame);
  if (!holds)
    return Flow::Failed;
  if (*holds)
    return Flow::Normal;
  auto message = stmt.message ? evaluate(*stmt.message, frame) : std::nullopt;
  diags.report(diag::AssertFailed, stmt.condition->range, message && message->isString() ? message->asString() : "");
  return Flow::Failed;
}

Evaluator::Flow Evaluator::runVar(const ast::VarStmt &stmt, Frame &frame) {
  if (!stmt.value) {
    fail(stmt.range, "a comptime variable needs a value");
    return Flow::Failed;
  }
  auto value = evaluate(*stmt.value, frame);
  if (!value)
    return Flow::Failed;
  if (stmt.names.size() == 1) {
    frame.declare(stmt.names[0].text, std::move(*value));
    return Flow::Normal;
  }
  if (!value->isSequence() || value->asSequence().items.size() != stmt.names.size()) {
    fail(stmt.value->range, fmt::format("found {}, expected {} values", value->str(), stmt.names.size()));
    return Flow::Failed;
  }
  for (size_t i = 0; i < stmt.names.size(); ++i)
    frame.declare(stmt.names[i].text, value->asSequence().items[i]);
  return Flow::Normal;
}

Evaluator::Flow Evaluator::runAugmented(const ast::AugmentedStmt &stmt, Frame &frame) {
  auto lhs = evaluate(*stmt.target, frame);
  auto rhs = lhs ? evaluate(*stmt.value, frame) : std::nullopt;
  if (!lhs || !rhs)
    return Flow::Failed;
  Folded result = foldBinary(stmt.op, *lhs, *rhs);
  if (!result) {
    fail(stmt.opRange, result.error);
    return Flow::Failed;
  }
  return assign(*stmt.target, std::move(*result.value), frame);
}

Evaluator::Flow Evaluator::runReturn(const ast::ReturnStmt &stmt, Frame &frame) {
  if (!stmt.value)
    return Flow::Return;
  auto value = evaluate(*stmt.value, frame);
  if (!value)
    return Flow::Failed;
  frame.result = std::move(*value);
  return Flow::Return;
}

Evaluator::Flow Evaluator::run(const ast::Stmt &stmt, Frame &frame) {
  if (!step(stmt.range))
    return Flow::Failed;
  switch (stmt.kind) {
  case ast::StmtKind::VarStmt:
    return runVar(*stmt.as<ast::VarStmt>(), frame);
  case ast::StmtKind::ComptimeConstStmt: {
    auto &constant = *stmt.as<ast::ComptimeConstStmt>();
    auto value = evaluate(*constant.value, frame);
    if (!value)
      return Flow::Failed;
    frame.declare(constant.name.text, std::move(*value));
    return Flow::Normal;
  }
  case ast::StmtKind::AssignStmt: {
    auto &assignment = *stmt.as<ast::AssignStmt>();
    auto value = evaluate(*assignment.value, frame);
    return value ? assign(*assignment.target, std::move(*value), frame) : Flow::Failed;
  }
  case ast::StmtKind::AugmentedStmt:
    return runAugmented(*stmt.as<ast::AugmentedStmt>(), frame);
  case ast::StmtKind::ExprStmt:
    return runCallStatement(*stmt.as<ast::ExprStmt>()->value, frame);
  case ast::StmtKind::IfStmt:
    return runIf(*stmt.as<ast::IfStmt>(), frame);
  case ast::StmtKind::ForStmt:
    return runFor(*stmt.as<ast::ForStmt>(), frame);
  case ast::StmtKind::WhileStmt:
    return runWhile(*stmt.as<ast::WhileStmt>(), frame);
  case ast::StmtKind::BreakStmt:
    return Flow::Break;
  case ast::StmtKind::ContinueStmt:
    return Flow::Continue;
  case ast::StmtKind::PassStmt:
    return Flow::Normal;
  case ast::StmtKind::ReturnStmt:
    return runReturn(*stmt.as<ast::ReturnStmt>(), frame);
  case ast::StmtKind::ComptimeAssertStmt:
    return runAssert(*stmt.as<ast::ComptimeAssertStmt>(), frame);
  case ast::StmtKind::RaiseStmt:
    fail(stmt.range, "the function raises an error");
    return Flow::Failed;
  case ast::StmtKind::LaunchStmt:
  case ast::StmtKind::ImportStmt:
  case ast::StmtKind::FunctionStmt:
  case ast::StmtKind::StructStmt:
    fail(stmt.range, "this statement has no meaning while compiling");
    return Flow::Failed;
  }
  return Flow::Failed;
}

} // namespace kpkg::compiler
