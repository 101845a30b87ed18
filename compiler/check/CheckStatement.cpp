// Checks blocks, and statements that are no assignments, branches, loops or launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

Flow Elaborator::checkBlock(const ast::Block &statements) {
  scope->open();
  Flow flow = checkFrom(statements, 0);
  scope->close();
  return flow;
}

/// Limit of statements in an op. Longer plans are refused, and generating their code takes quadratic time.
static constexpr unsigned maxOpStatements = 16384;

Flow Elaborator::checkFrom(const ast::Block &statements, size_t first) {
  for (size_t i = first; i < statements.size(); ++i) {
    if (kind == BodyKind::Op && ++statementCount > maxOpStatements) {
      if (statementCount == maxOpStatements + 1)
        diags.report(diag::OpTooLong, statements[i]->range, function.name, maxOpStatements);
      return Flow::Stops;
    }
    bool tookRest = false;
    auto *branches = statements[i]->as<ast::IfStmt>();
    Flow flow = branches && !branches->isComptime ? checkIf(*branches, 0, statements, i + 1, tookRest)
                                                  : checkStatement(*statements[i]);
    if (tookRest || flow == Flow::Exits || flow == Flow::Stops)
      return flow;
    if (flow == Flow::Maybe)
      return i + 1 == statements.size() ? flow
                                        : guarded([&] { return checkFrom(statements, i + 1); }, statements[i]->range);
  }
  return Flow::Normal;
}

Flow Elaborator::checkStatement(const ast::Stmt &stmt) {
  switch (stmt.kind) {
  case ast::StmtKind::VarStmt:
    checkVar(*stmt.as<ast::VarStmt>());
    return Flow::Normal;
  case ast::StmtKind::AssignStmt: {
    auto &assignment = *stmt.as<ast::AssignStmt>();
    checkAssign(*assignment.target, check(*assignment.value), stmt.range);
    return Flow::Normal;
  }
  case ast::StmtKind::AugmentedStmt:
    checkAugmented(*stmt.as<ast::AugmentedStmt>());
    return Flow::Normal;
  case ast::StmtKind::ExprStmt:
    check(*stmt.as<ast::ExprStmt>()->value);
    return Flow::Normal;
  case ast::StmtKind::IfStmt:
    return checkComptimeIf(*stmt.as<ast::IfStmt>());
  case ast::StmtKind::ForStmt:
    return checkFor(*stmt.as<ast::ForStmt>());
  case ast::StmtKind::WhileStmt:
    return checkWhile(*stmt.as<ast::WhileStmt>());
  case ast::StmtKind::BreakStmt:
    return checkLoopExit(stmt.range, true);
  case ast::StmtKind::ContinueStmt:
    return checkLoopExit(stmt.range, false);
  case ast::StmtKind::PassStmt:
    return Flow::Normal;
  case ast::StmtKind::ReturnStmt:
    return checkReturn(*stmt.as<ast::ReturnStmt>());
  case ast::StmtKind::RaiseStmt:
    return checkRaise(*stmt.as<ast::RaiseStmt>());
  case ast::StmtKind::ComptimeConstStmt:
    checkComptimeConst(*stmt.as<ast::ComptimeConstStmt>());
    return Flow::Normal;
  case ast::StmtKind::ComptimeAssertStmt:
    checkComptimeAssert(*stmt.as<ast::ComptimeAssertStmt>());
    return Flow::Normal;
  case ast::StmtKind::LaunchStmt:
    checkLaunch(*stmt.as<ast::LaunchStmt>());
    return Flow::Normal;
  case ast::StmtKind::ImportStmt:
  case ast::StmtKind::FunctionStmt:
  case ast::StmtKind::StructStmt:
    return Flow::Normal; // reported by the parser
  }
  return Flow::Normal;
}

void Elaborator::checkComptimeConst(const ast::ComptimeConstStmt &stmt) {
  auto value = comptime(*stmt.value);
  declareTarget(stmt.name, value ? constant(*value, stmt.value->range) : error(stmt.range));
}

void Elaborator::checkComptimeAssert(const ast::ComptimeAssertStmt &stmt) {
  auto holds = comptime(*stmt.condition);
  if (!holds)
    return;
  if (!holds->isBool()) {
    diags.report(diag::ConditionNotBool, stmt.condition->range, kindName(*holds));
    return;
  }
  if (holds->asBool())
    return;
  auto message = stmt.message ? comptime(*stmt.message) : std::nullopt;
  diags.report(diag::AssertFailed, stmt.condition->range, message && message->isString() ? message->asString() : "");
}

/// Returns whether the kind of a value fits the function's result type.
bool Elaborator::meetsResultSpec(const Operand &value) const {
  switch (frame->resultSpec.kind) {
  case TypeSpec::Exact:
  case TypeSpec::Any:
    return true;
  case TypeSpec::AnyTile:
    return value.type->isTile();
  case TypeSpec::AnyScalar:
    return value.type->isScalar();
  case TypeSpec::AnyTensor:
    return value.type->isTensor() || value.type->isOptionalTensor() || value.type->kind == TypeKind::View;
  case TypeSpec::Struct:
    return isOfStruct(value, frame->resultSpec);
  case TypeSpec::Wrong:
    break;
  }
  return false;
}

void Elaborator::returnValue(const Operand &value, SourceRange range) {
  const TypeSpec &spec = frame->resultSpec;
  bool fits = meetsResultSpec(value);
  const Type *exact = spec.kind == TypeSpec::Exact ? spec.exact : nullptr;
  if (spec.kind == TypeSpec::AnyTensor && kind == BodyKind::Op)
    exact = types.tensor;
  std::vector<Operand> items = {value};
  std::vector<const Type *> wanted = {exact};
  frame->isTuple = value.type->kind == TypeKind::Tuple;
  if (frame->isTuple) {
    items = itemsOf(value);
    wanted.assign(items.size(), nullptr);
    if (exact && exact->kind == TypeKind::Tuple && exact->items.size() == items.size())
      wanted = exact->items;
    else if (exact)
      fits = false;
  } else if (exact && exact->kind == TypeKind::Tuple) {
    fits = false;
  }
  if (!fits)
    diags.report(diag::TypeMismatch, value.range, "the result", describe(value), exact ? exact->str() : spec.str());
  else if (value.isStruct() && !exact)
    returnStruct(value, range);
  else if (!frame->sawReturn && block == frame->body)
    returnDirectly(std::move(items), wanted, range);
  else
    returnByVariables(items, wanted, range);
}

/// Returns the result of the only return, which needs no variable.
void Elaborator::returnDirectly(std::vector<Operand> items, const std::vector<const Type *> &wanted,
                                SourceRange range) {
  for (size_t i = 0; i < items.size(); ++i) {
    if (!wanted[i] || items[i].type == wanted[i] || (items[i].type->isTensor() && wanted[i]->isTensor()))
      continue;
    if (items[i].constant && wanted[i]->isScalar() && fitsConstant(*items[i].constant, wanted[i]->element) &&
        items[i].constant->isBool() == (wanted[i]->element == DType::Bool)) {
      if (isFloat(wanted[i]->element))
        items[i] = constant(Value(items[i].constant->asNumber()), items[i].range);
      continue;
    }
    Node *node = convert(items[i], wanted[i], "the result");
    items[i] = node ? runTime(node) : error(range);
  }
  frame->direct = frame->isTuple ? tuple(std::move(items), range) : items[0];
}

void Elaborator::returnByVariables(const std::vector<Operand> &items, const std::vector<const Type *> &wanted,
                                   SourceRange range) {
  for (size_t i = 0; i < items.size(); ++i) {
    bool isHandle = items[i].type->kind == TypeKind::View || items[i].type->kind == TypeKind::Window;
    if (isHandle) {
      notSupported(items[i].range, "an early return of " + items[i].type->str(), "return the tile that it loads");
      break;
    }
    if (frame->results.size() <= i) {
      const Type *type = wanted[i] ? wanted[i] : items[i].type;
      frame->results.push_back(newLocal("result", type));
    }
    if (Node *node = convert(items[i], frame->results[i]->type, "the result"))
      setLocal(frame->results[i], node, range);
  }
}

Flow Elaborator::checkReturn(const ast::ReturnStmt &stmt) {
  Operand value = stmt.value ? check(*stmt.value) : none(stmt.range);
  bool inTiles = false;
  for (const Loop *loop : frame->loops)
    inTiles |= loop->isTiles;
  if (inTiles) {
    notSupported(stmt.range, "`return` inside a loop over output tiles", "put what follows under an `if`");
    return Flow::Exits;
  }
  if (!frame->hasResult) {
    if (!value.isError() && !value.isNone())
      diags.report(diag::UnexpectedResult, stmt.value->range, frame->function->name(), describe(value))
          .note(diag::DeclaredHere, frame->function->syntax->signatureRange, frame->function->name());
  } else if (!value.isError()) {
    returnValue(value, stmt.range);
  }
  frame->sawReturn = true;
  if (kind == BodyKind::Op)
    frame->atReturns.push_back(valueRanges.save());
  for (Loop *loop : frame->loops) {
    exitHere(loop->skip);
    if (loop->stop)
      setLocal(loop->stop, emitConstant(Value(true), types.boolean(), stmt.range), stmt.range);
  }
  exitHere(frame->returned);
  return Flow::Exits;
}

Flow Elaborator::checkRaise(const ast::RaiseStmt &stmt) {
  auto *call = stmt.value->as<ast::CallExpr>();
  auto *name = call ? call->callee->as<ast::NameExpr>() : nullptr;
  auto *format = name && name->name == "Error" && !call->arguments.empty()
                     ? call->arguments[0].value->as<ast::StringLiteral>()
                     : nullptr;
  if (!format) {
    diags.report(diag::RaiseNeedsError, stmt.value->range);
    return Flow::Stops;
  }
  if (kind == BodyKind::Kernel) {
    diags.report(diag::OnlyInOps, stmt.range, "raise");
    return Flow::Stops;
  }
  for (Frame *outer = frame; outer; outer = outer->caller)
    if (!outer->function->syntax->raises) {
      diags.report(diag::RaisesNotDeclared, stmt.range, outer->function->name())
          .note(diag::DeclaredHere, outer->function->syntax->signatureRange, outer->function->name());
      break;
    }
  std::vector<Node *> values;
  for (size_t i = 1; i < call->arguments.size(); ++i) {
    Operand operand = check(*call->arguments[i].value);
    if (operand.isError())
      return Flow::Stops;
    if (Node *node = materialise(operand))
      values.push_back(node);
  }
  size_t places = 0;
  for (size_t at = 0; (at = format->value.find("{}", at)) != std::string::npos; at += 2)
    ++places;
  if (places != call->arguments.size() - 1) {
    diags.report(diag::FormatCount, format->range, static_cast<int64_t>(places),
                 static_cast<int64_t>(call->arguments.size() - 1));
    return Flow::Stops;
  }
  emit(Kind::Raise, types.none, stmt.range, std::move(values))->text = format->value;
  return Flow::Stops;
}

} // namespace kpkg::compiler
