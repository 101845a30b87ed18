// Evaluates comptime expressions and calls.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/comptime/EvalFrame.h"
#include "compiler/comptime/Fold.h"
#include "compiler/diag/NearestName.h"

namespace kpkg::compiler {

bool Evaluator::step(SourceRange range) {
  if (++stepsTaken <= limits.steps)
    return true;
  if (!limitReported)
    diags.report(diag::ComptimeLimit, range, fmt::format("{} steps", limits.steps));
  limitReported = true;
  return false;
}

std::optional<Value> Evaluator::fail(SourceRange range, const std::string &why) {
  diags.report(diag::ComptimeError, range, why);
  return std::nullopt;
}

std::optional<Value> Evaluator::name(const ast::NameExpr &expr, const Environment &environment) {
  Meaning meaning = environment.lookup(expr.name, expr.range);
  switch (meaning.kind) {
  case Meaning::Known:
    return meaning.value;
  case Meaning::Unknown: {
    if (auto value = builtinConstant(expr.name))
      return value;
    std::vector<std::string> names = builtinConstantNames();
    environment.addNames(names);
    reportUnknownName(diags, expr.name, expr.range, names);
    return std::nullopt;
  }
  case Meaning::RunTime:
    diags.report(diag::NotComptime, expr.range, expr.name);
    return std::nullopt;
  case Meaning::Reported:
    break;
  }
  return std::nullopt;
}

std::optional<bool> Evaluator::condition(const ast::Expr &expr, const Environment &environment) {
  auto value = evaluate(expr, environment);
  if (!value)
    return std::nullopt;
  if (!value->isBool()) {
    diags.report(diag::ConditionNotBool, expr.range, kindName(*value));
    return std::nullopt;
  }
  return value->asBool();
}

std::optional<Value> Evaluator::logical(const ast::LogicalExpr &expr, const Environment &environment) {
  auto lhs = condition(*expr.lhs, environment);
  if (!lhs)
    return std::nullopt;
  if (*lhs != expr.isAnd)
    return Value(*lhs);
  auto rhs = condition(*expr.rhs, environment);
  return rhs ? std::optional(Value(*rhs)) : std::nullopt;
}

std::optional<Value> Evaluator::compare(const ast::CompareExpr &expr, const Environment &environment) {
  auto lhs = evaluate(*expr.first, environment);
  for (const auto &link : expr.links) {
    if (!lhs)
      return std::nullopt;
    auto rhs = evaluate(*link.rhs, environment);
    if (!rhs)
      return std::nullopt;
    Folded holds = foldCompare(link.op, *lhs, *rhs);
    if (!holds)
      return fail(link.opRange, holds.error);
    if (!holds.value->asBool())
      return Value(false);
    lhs = rhs;
  }
  return Value(true);
}

std::optional<Value> Evaluator::sequence(const std::vector<ast::ExprPtr> &elements, bool isList,
                                         const Environment &environment) {
  std::vector<Value> items;
  for (const ast::ExprPtr &element : elements) {
    auto value = evaluate(*element, environment);
    if (!value)
      return std::nullopt;
    items.push_back(std::move(*value));
  }
  return isList ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

std::optional<Value> Evaluator::index(const ast::IndexExpr &expr, const Environment &environment) {
  auto base = evaluate(*expr.base, environment);
  if (!base)
    return std::nullopt;
  if (expr.arguments.size() != 1)
    return fail(expr.range, "cannot index " + kindName(*base) + " by several values");
  if (auto *slice = expr.arguments[0].value->as<ast::SliceExpr>()) {
    if (!base->isSequence() || slice->step)
      return fail(expr.range, "cannot slice " + kindName(*base) + (slice->step ? " with a step" : ""));
    const auto &items = base->asSequence().items;
    int64_t size = static_cast<int64_t>(items.size()), bounds[2] = {0, size};
    const ast::ExprPtr *parts[2] = {&slice->start, &slice->stop};
    for (int i = 0; i < 2; ++i) {
      if (!*parts[i])
        continue;
      auto value = evaluate(**parts[i], environment);
      if (!value)
        return std::nullopt;
      if (!value->isInt())
        return fail((*parts[i])->range, "a bound of a slice is " + kindName(*value) + ", expected Int");
      int64_t at = value->asInt() < 0 ? value->asInt() + size : value->asInt();
      bounds[i] = std::min(std::max<int64_t>(at, 0), size);
    }
    std::vector<Value> part;
    if (bounds[0] < bounds[1])
      part.assign(items.begin() + bounds[0], items.begin() + bounds[1]);
    return base->asSequence().isList ? Value::list(std::move(part)) : Value::tuple(std::move(part));
  }
  auto at = evaluate(*expr.arguments[0].value, environment);
  if (!at)
    return std::nullopt;
  Folded item = foldIndex(*base, *at);
  return item ? item.value : fail(expr.range, item.error);
}

std::optional<Value> Evaluator::unary(const ast::UnaryExpr &expr, const Environment &environment) {
  auto *literal = expr.operand->as<ast::IntLiteral>();
  if (literal && expr.op == ast::UnaryOp::Minus && literal->value == uint64_t(1) << 63)
    return Value(INT64_MIN);
  auto operand = evaluate(*expr.operand, environment);
  if (!operand)
    return std::nullopt;
  Folded result = foldUnary(expr.op, *operand);
  return result ? result.value : fail(expr.range, result.error);
}

std::optional<Value> Evaluator::binary(const ast::BinaryExpr &expr, const Environment &environment) {
  auto lhs = evaluate(*expr.lhs, environment);
  auto rhs = lhs ? evaluate(*expr.rhs, environment) : std::nullopt;
  if (!lhs || !rhs)
    return std::nullopt;
  Folded result = foldBinary(expr.op, *lhs, *rhs);
  if (!result)
    return fail(expr.opRange, result.error);
  bool tooLong = (result.value->isString() && result.value->asString().size() > limits.items) ||
                 (result.value->isSequence() && result.value->asSequence().items.size() > limits.items);
  if (tooLong) {
    diags.report(diag::ComptimeLimit, expr.range, fmt::format("{} items in one value", limits.items));
    return std::nullopt;
  }
  return result.value;
}

std::optional<Value> Evaluator::attribute(const ast::AttributeExpr &expr, const Environment &environment) {
  if (auto *module = expr.base->as<ast::NameExpr>()) {
    Meaning meaning = environment.lookupMember(module->name, expr.attribute.text, expr.attribute.range);
    if (meaning.kind == Meaning::Known)
      return meaning.value;
    if (meaning.kind == Meaning::Reported)
      return std::nullopt;
  } else if (expr.base->is<ast::AttributeExpr>()) {
    Meaning meaning = environment.lookupAttribute(*expr.base, expr.attribute.text);
    if (meaning.kind == Meaning::Known)
      return meaning.value;
  }
  auto base = evaluate(*expr.base, environment);
  if (!base)
    return std::nullopt;
  Folded result = foldAttribute(*base, expr.attribute.text);
  return result ? result.value : fail(expr.attribute.range, result.error);
}

std::optional<Value> Evaluator::evaluate(const ast::Expr &expr, const Environment &environment) {
  if (!step(expr.range))
    return std::nullopt;
  switch (expr.kind) {
  case ast::ExprKind::IntLiteral: {
    uint64_t value = expr.as<ast::IntLiteral>()->value;
    if (value > INT64_MAX)
      return fail(expr.range, "the number does not fit Int");
    return Value(static_cast<int64_t>(value));
  }
  case ast::ExprKind::FloatLiteral:
    return Value(expr.as<ast::FloatLiteral>()->value);
  case ast::ExprKind::StringLiteral:
    return Value(expr.as<ast::StringLiteral>()->value);
  case ast::ExprKind::BoolLiteral:
    return Value(expr.as<ast::BoolLiteral>()->value);
  case ast::ExprKind::NoneLiteral:
    return Value();
  case ast::ExprKind::NameExpr:
    return name(*expr.as<ast::NameExpr>(), environment);
  case ast::ExprKind::UnaryExpr:
    return unary(*expr.as<ast::UnaryExpr>(), environment);
  case ast::ExprKind::BinaryExpr:
    return binary(*expr.as<ast::BinaryExpr>(), environment);
  case ast::ExprKind::LogicalExpr:
    return logical(*expr.as<ast::LogicalExpr>(), environment);
  case ast::ExprKind::CompareExpr:
    return compare(*expr.as<ast::CompareExpr>(), environment);
  case ast::ExprKind::ConditionalExpr: {
    auto &conditional = *expr.as<ast::ConditionalExpr>();
    auto chosen = condition(*conditional.condition, environment);
    if (!chosen)
      return std::nullopt;
    return evaluate(*chosen ? *conditional.thenValue : *conditional.elseValue, environment);
  }
  case ast::ExprKind::CallExpr:
    return callee(*expr.as<ast::CallExpr>(), environment);
  case ast::ExprKind::IndexExpr:
    return index(*expr.as<ast::IndexExpr>(), environment);
  case ast::ExprKind::AttributeExpr:
    return attribute(*expr.as<ast::AttributeExpr>(), environment);
  case ast::ExprKind::TupleExpr:
    return sequence(expr.as<ast::TupleExpr>()->elements, false, environment);
  case ast::ExprKind::ListExpr:
    return sequence(expr.as<ast::ListExpr>()->elements, true, environment);
  case ast::ExprKind::SliceExpr:
  case ast::ExprKind::EllipsisExpr:
  case ast::ExprKind::DictExpr:
    return fail(expr.range, "this expression has no comptime value");
  case ast::ExprKind::ErrorExpr:
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Value> Evaluator::targetQuery(const ast::AttributeExpr &method, const ast::CallExpr &call,
                                            const Environment &environment) {
  if (!environment.lookup(std::string(targetName), call.range).value.isString())
    return fail(method.base->range,
                "`target` is another name of this module here, not what code is built for; give that one another name");
  if (method.attribute.text != "has")
    return fail(method.attribute.range,
                "`target` has no method `" + method.attribute.text + "`; ask `target.has(\"gpu\")`");
  if (call.arguments.size() != 1)
    return fail(call.range, "`target.has` takes one String, \"cpu\" or \"gpu\"");
  auto asked = evaluate(*call.arguments[0].value, environment);
  if (!asked)
    return std::nullopt;
  if (!asked->isString() || (asked->asString() != "cpu" && asked->asString() != "gpu"))
    return fail(call.arguments[0].value->range, "targets have \"cpu\" or \"gpu\"");
  return Value(environment.lookup(std::string(targetName), call.range).value.asString() == asked->asString());
}

} // namespace kpkg::compiler
