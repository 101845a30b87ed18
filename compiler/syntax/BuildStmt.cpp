// Builds syntax trees of statements and of the module.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Builder.h"

using namespace kpkg::compiler;
using namespace kpkg::compiler::ast;

Module Builder::module(P::ModuleContext &tree) {
  Module result;
  result.file = file.id();
  result.body = statements(Children(&tree).take<P::StatementsContext>());
  result.doc = takeDocstring(result.body);
  checkPlaces(result.body);
  return result;
}

void Builder::checkPlaces(const Block &moduleBody) {
  for (const StmtPtr &statement : moduleBody) {
    std::string_view what;
    switch (statement->kind) {
    case StmtKind::FunctionStmt:
    case StmtKind::StructStmt:
    case StmtKind::ImportStmt:
    case StmtKind::ComptimeConstStmt:
    case StmtKind::ComptimeAssertStmt:
      continue;
    case StmtKind::IfStmt: {
      auto *branches = statement->as<IfStmt>();
      if (!branches->isComptime) {
        what = "`if`";
        break;
      }
      for (const IfStmt::Branch &branch : branches->branches)
        checkPlaces(branch.body);
      if (branches->elseBody)
        checkPlaces(*branches->elseBody);
      continue;
    }
    case StmtKind::BreakStmt:
    case StmtKind::ContinueStmt: // reported as outside a loop
    case StmtKind::ReturnStmt:
    case StmtKind::RaiseStmt:
    case StmtKind::LaunchStmt: // reported as outside a function
    case StmtKind::PassStmt:
      continue;
    case StmtKind::VarStmt:
      diags.report(diag::NotAtModuleLevel, statement->range, "`var`")
          .fix({file.id(), statement->range.begin, statement->range.begin + 3}, "comptime");
      continue;
    case StmtKind::ForStmt:
      what = "`for`";
      break;
    case StmtKind::WhileStmt:
      what = "`while`";
      break;
    case StmtKind::AssignStmt:
    case StmtKind::AugmentedStmt:
      what = "an assignment";
      break;
    case StmtKind::ExprStmt:
      if (statement->as<ExprStmt>()->value->is<ErrorExpr>())
        continue;
      what = "an expression";
      break;
    }
    diags.report(diag::NotAtModuleLevel, statement->range, what);
  }
}

Block Builder::statements(P::StatementsContext *tree) {
  Block result;
  for (Children children(tree); !children.done();) {
    if (auto *item = children.take<P::StatementContext>())
      statement(item, result);
    else
      children.advance();
  }
  return result;
}

Block Builder::block(P::BlockContext *tree) {
  Block result;
  for (Children children(tree); !children.done();) {
    if (auto *list = children.take<P::StatementsContext>())
      return statements(list);
    if (auto *one = children.take<P::SimpleStatementContext>())
      simple(one, result);
    else
      children.advance();
  }
  return result;
}

void Builder::statement(P::StatementContext *tree, Block &block) {
  Children children(tree);
  StmtPtr result;
  if (auto *rule = children.take<P::SimpleStatementContext>())
    return simple(rule, block);
  if (auto *rule = children.take<P::IfStatementContext>())
    result = ifStatement(rule, false);
  else if (auto *rule = children.take<P::ForStatementContext>())
    result = forStatement(rule, false);
  else if (auto *rule = children.take<P::WhileStatementContext>())
    result = whileStatement(rule);
  else if (auto *rule = children.take<P::ComptimeStatementContext>())
    result = comptimeStatement(rule);
  else if (auto *rule = children.take<P::DefinitionContext>())
    result = definition(rule);
  if (result)
    block.push_back(std::move(result));
}

void Builder::simple(P::SimpleStatementContext *tree, Block &block) {
  Children children(tree);
  SourceRange whole = range(tree);
  StmtPtr result;
  auto needsFunction = [&](std::string_view word) {
    if (!inFunction)
      diags.report(diag::OutsideFunction, whole, word);
  };
  auto needsLoop = [&](std::string_view word) {
    if (loops == 0)
      diags.report(diag::OutsideLoop, whole, word);
  };
  if (auto *rule = children.take<P::VariableContext>()) {
    result = variable(rule);
  } else if (auto *rule = children.take<P::ExpressionStatementContext>()) {
    result = expressionStatement(rule);
  } else if (auto *rule = children.take<P::ReturnStatementContext>()) {
    needsFunction("return");
    auto stmt = std::make_unique<ReturnStmt>(whole);
    Children parts(rule);
    parts.take(P::RETURN);
    if (auto *value = parts.take<P::ExpressionsContext>())
      stmt->value = expressions(value, whole);
    result = std::move(stmt);
  } else if (auto *rule = children.take<P::RaiseStatementContext>()) {
    needsFunction("raise");
    auto stmt = std::make_unique<RaiseStmt>(whole);
    Children parts(rule);
    parts.take(P::RAISE);
    stmt->value = expression(parts.take<P::ExpressionContext>(), whole);
    result = std::move(stmt);
  } else if (auto *rule = children.take<P::LaunchStatementContext>()) {
    needsFunction("launch");
    result = launch(rule);
  } else if (auto *rule = children.take<P::ImportStatementContext>()) {
    result = import(rule);
  } else if (auto *rule = children.take<P::FromStatementContext>()) {
    result = from(rule);
  } else if (children.take(P::BREAK)) {
    needsLoop("break");
    result = std::make_unique<BreakStmt>(whole);
  } else if (children.take(P::CONTINUE)) {
    needsLoop("continue");
    result = std::make_unique<ContinueStmt>(whole);
  } else if (children.take(P::PASS)) {
    result = std::make_unique<PassStmt>(whole);
  }
  if (!result)
    return;
  if (result->is<ImportStmt>() && inFunction)
    diags.report(diag::ImportInFunction, whole);
  block.push_back(std::move(result));
}

StmtPtr Builder::variable(P::VariableContext *tree) {
  auto var = std::make_unique<VarStmt>(range(tree));
  Children children(tree);
  children.take(P::VAR);
  do {
    if (antlr4::Token *name = children.take(P::NAME))
      var->names.push_back(identifier(name));
  } while (children.take(P::COMMA));
  if (var->names.empty())
    return nullptr;
  if (antlr4::Token *colon = children.take(P::COLON)) {
    var->type = expression(children.take<P::ExpressionContext>(), var->range);
    if (var->names.size() > 1)
      diags.report(diag::ExpectedToken, range(colon), "`:`", "`=` after several names");
  }
  if (children.take(P::ASSIGN))
    var->value = expressions(children.take<P::ExpressionsContext>(), var->range);
  // After a syntax error in it, the statement ends early, and nothing more is reported.
  if (!var->value && !var->type && !tree->exception)
    diags.report(diag::VariableNeedsValue, var->range, var->names.front().text);
  if (!var->value && (!var->type || var->names.size() > 1))
    var->value = error(var->range);
  return var;
}

static std::string_view describe(const Expr &expr) {
  switch (expr.kind) {
  case ExprKind::IntLiteral:
  case ExprKind::FloatLiteral:
    return "a number";
  case ExprKind::StringLiteral:
    return "a string";
  case ExprKind::BoolLiteral:
    return "a Bool";
  case ExprKind::NoneLiteral:
    return "`None`";
  case ExprKind::CallExpr:
    return "the result of a call";
  case ExprKind::TupleExpr:
    return "a tuple";
  case ExprKind::ListExpr:
  case ExprKind::DictExpr:
    return "a list";
  default:
    return "the result of an operator";
  }
}

void Builder::checkTarget(const Expr &target, bool allowTuple) {
  switch (target.kind) {
  case ExprKind::NameExpr:
  case ExprKind::IndexExpr:
  case ExprKind::AttributeExpr:
  case ExprKind::ErrorExpr:
    return;
  case ExprKind::TupleExpr:
    if (allowTuple && !target.as<TupleExpr>()->elements.empty()) {
      for (const ExprPtr &element : target.as<TupleExpr>()->elements)
        checkTarget(*element, false);
      return;
    }
    [[fallthrough]];
  default:
    diags.report(diag::InvalidTarget, target.range, describe(target));
  }
}

static std::optional<BinaryOp> augmentedOp(std::string_view text) {
  text.remove_suffix(1);
  for (BinaryOp op :
       {BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::FloorDiv, BinaryOp::Mod, BinaryOp::Pow,
        BinaryOp::BitAnd, BinaryOp::BitOr, BinaryOp::BitXor, BinaryOp::ShiftLeft, BinaryOp::ShiftRight})
    if (spelling(op) == text)
      return op;
  return std::nullopt;
}

StmtPtr Builder::expressionStatement(P::ExpressionStatementContext *tree) {
  Children children(tree);
  SourceRange whole = range(tree);
  ExprPtr first = expressions(children.take<P::ExpressionsContext>(), whole);
  antlr4::Token *op = children.take();
  if (!op) {
    auto stmt = std::make_unique<ExprStmt>(whole);
    stmt->value = std::move(first);
    return stmt;
  }
  ExprPtr value = expressions(children.take<P::ExpressionsContext>(), whole);
  if (op->getType() == P::ASSIGN) {
    checkTarget(*first, true);
    auto stmt = std::make_unique<AssignStmt>(whole);
    stmt->target = std::move(first);
    stmt->value = std::move(value);
    return stmt;
  }
  checkTarget(*first, false);
  auto stmt = std::make_unique<AugmentedStmt>(whole);
  stmt->opRange = range(op);
  stmt->op = *augmentedOp(file.slice(stmt->opRange));
  stmt->target = std::move(first);
  stmt->value = std::move(value);
  return stmt;
}

StmtPtr Builder::launch(P::LaunchStatementContext *tree) {
  Children children(tree);
  children.take(P::LAUNCH);
  auto stmt = std::make_unique<LaunchStmt>(range(tree));
  ExprPtr target = operand(children.take<P::OperandContext>(), stmt->range);
  if (target->is<ErrorExpr>())
    return nullptr;
  auto *call = target->as<CallExpr>();
  ExprPtr kernel = call ? std::move(call->callee) : nullptr;
  if (auto *instance = kernel ? kernel->as<IndexExpr>() : nullptr) {
    stmt->parameters = std::move(instance->arguments);
    kernel = std::move(instance->base);
  }
  if (!kernel || !(kernel->is<NameExpr>() || kernel->is<AttributeExpr>())) {
    diags.report(diag::LaunchNeedsCall, target->range,
                 call ? "a call of something that has no name" : "something that is not called");
    return nullptr;
  }
  stmt->kernel = std::move(kernel);
  stmt->arguments = std::move(call->arguments);
  return stmt;
}

std::vector<Identifier> Builder::modulePath(P::ModulePathContext *tree) {
  std::vector<Identifier> parts;
  for (Children children(tree); !children.done();) {
    if (antlr4::Token *name = children.take(P::NAME))
      parts.push_back(identifier(name));
    else
      children.advance();
  }
  return parts;
}

StmtPtr Builder::import(P::ImportStatementContext *tree) {
  auto stmt = std::make_unique<ImportStmt>(range(tree));
  Children children(tree);
  children.take(P::IMPORT);
  stmt->module = modulePath(children.take<P::ModulePathContext>());
  if (children.take(P::AS))
    stmt->alias = identifier(children.take(P::NAME));
  return stmt->module.empty() ? nullptr : std::move(stmt);
}

StmtPtr Builder::from(P::FromStatementContext *tree) {
  auto stmt = std::make_unique<ImportStmt>(range(tree));
  stmt->isFrom = true;
  bool afterComma = false;
  for (Children children(tree); !children.done();) {
    if (auto *path = children.take<P::ModulePathContext>()) {
      stmt->module = modulePath(path);
    } else if (auto *item = children.take<P::ImportedNameContext>()) {
      Children parts(item);
      ImportStmt::Name name;
      name.name = identifier(parts.take(P::NAME));
      if (parts.take(P::AS))
        name.alias = identifier(parts.take(P::NAME));
      if (name.name)
        stmt->names.push_back(std::move(name));
      afterComma = false;
    } else {
      antlr4::Token *comma = children.take(P::COMMA);
      checkComma(comma, afterComma);
      if (comma)
        afterComma = true;
      else
        children.advance();
    }
  }
  return stmt->module.empty() ? nullptr : std::move(stmt);
}

StmtPtr Builder::ifStatement(P::IfStatementContext *tree, bool isComptime) {
  auto stmt = std::make_unique<IfStmt>(range(tree));
  stmt->isComptime = isComptime;
  for (Children children(tree); !children.done();) {
    antlr4::Token *word = children.take();
    if (!word)
      continue; // take() skipped something left by error recovery
    if (word->getType() == P::ELSE) {
      stmt->elseBody = block(children.take<P::BlockContext>());
      continue;
    }
    IfStmt::Branch branch;
    branch.condition = expression(children.take<P::ExpressionContext>(), range(word));
    branch.body = block(children.take<P::BlockContext>());
    stmt->branches.push_back(std::move(branch));
  }
  return stmt->branches.empty() ? nullptr : std::move(stmt);
}

Block Builder::loopBody(P::BlockContext *tree) {
  ++loops;
  Block body = block(tree);
  --loops;
  return body;
}

StmtPtr Builder::forStatement(P::ForStatementContext *tree, bool isComptime) {
  auto stmt = std::make_unique<ForStmt>(range(tree));
  stmt->isComptime = isComptime;
  Children children(tree);
  children.take(P::FOR);
  do {
    if (antlr4::Token *name = children.take(P::NAME))
      stmt->targets.push_back(identifier(name));
  } while (children.take(P::COMMA));
  children.take(P::IN);
  stmt->iterable = expressions(children.take<P::ExpressionsContext>(), stmt->range);
  stmt->body = loopBody(children.take<P::BlockContext>());
  return stmt->targets.empty() ? nullptr : std::move(stmt);
}

StmtPtr Builder::whileStatement(P::WhileStatementContext *tree) {
  auto stmt = std::make_unique<WhileStmt>(range(tree));
  Children children(tree);
  children.take(P::WHILE);
  stmt->condition = expression(children.take<P::ExpressionContext>(), stmt->range);
  stmt->body = loopBody(children.take<P::BlockContext>());
  return stmt;
}

StmtPtr Builder::comptimeStatement(P::ComptimeStatementContext *tree) {
  Children children(tree);
  SourceRange whole = range(tree);
  antlr4::Token *word = children.take(P::COMPTIME);
  StmtPtr result;
  if (auto *rule = children.take<P::IfStatementContext>()) {
    result = ifStatement(rule, true);
  } else if (auto *rule = children.take<P::ForStatementContext>()) {
    result = forStatement(rule, true);
  } else if (children.take(P::ASSERT)) {
    auto stmt = std::make_unique<ComptimeAssertStmt>(whole);
    stmt->condition = expression(children.take<P::ExpressionContext>(), whole);
    if (children.take(P::COMMA))
      stmt->message = expression(children.take<P::ExpressionContext>(), whole);
    SourceRange last = stmt->message ? stmt->message->range : stmt->condition->range;
    stmt->range = range(word).to(last);
    return stmt;
  } else if (antlr4::Token *name = children.take(P::NAME)) {
    auto stmt = std::make_unique<ComptimeConstStmt>(whole);
    stmt->name = identifier(name);
    if (children.take(P::COLON))
      stmt->type = expression(children.take<P::ExpressionContext>(), whole);
    children.take(P::ASSIGN);
    stmt->value = expressions(children.take<P::ExpressionsContext>(), whole);
    stmt->range = range(word).to(stmt->value->range);
    return stmt;
  }
  if (result)
    result->range = whole;
  return result;
}
