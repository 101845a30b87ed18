// Checks lists of Int and of tensors on the host, and of run-time values in kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"
#include "compiler/comptime/Fold.h"

#include <algorithm>

namespace kpkg::compiler {

Operand Elaborator::checkList(const ast::ListExpr &expr) {
  std::vector<Operand> items;
  std::vector<Value> values;
  for (const ast::ExprPtr &element : expr.elements) {
    items.push_back(check(*element));
    if (items.back().isError())
      return error(expr.range);
    if (items.back().constant)
      values.push_back(*items.back().constant);
  }
  if (values.size() == items.size())
    return constant(Value::list(std::move(values)), expr.range);
  if (kind == BodyKind::Kernel) // an index is known while compiling, so that each item is a value of its own
    return tuple(std::move(items), expr.range);
  auto isTensor = [](const Operand &item) { return item.type->isTensor() || item.type->isOptionalTensor(); };
  bool hasTensors = std::any_of(items.begin(), items.end(), isTensor);
  std::vector<Node *> nodes;
  for (const Operand &item : items)
    nodes.push_back(hasTensors ? tensorNode(item, "an item of a list of tensors") : intNode(item, "an item of a list"));
  return result(Kind::MakeList, hasTensors ? types.tensorList : types.list, expr.range, std::move(nodes));
}

/// Joins two lists of one type, of which one may be `[]`.
Operand Elaborator::joinLists(const Operand &lhs, const Operand &rhs, SourceRange range) {
  const Type *type = isEmptyList(lhs) ? rhs.type : lhs.type;
  return result(Kind::ListConcat, type, range, {convert(lhs, type, "a list"), convert(rhs, type, "a list")});
}

/// Joins two tuples, or repeats one: `[v] * 4`.
Operand Elaborator::binaryOfTuples(ast::BinaryOp op, const Operand &lhs, const Operand &rhs, SourceRange range) {
  constexpr int64_t maxItems = 4096;
  std::vector<Operand> items = itemsOf(lhs);
  std::vector<Operand> others = itemsOf(rhs);
  if (op == ast::BinaryOp::Add && hasItems(lhs) && hasItems(rhs)) {
    items.insert(items.end(), others.begin(), others.end());
    return tuple(std::move(items), range);
  }
  if (op != ast::BinaryOp::Mul || !rhs.isConstantInt()) {
    diags.report(diag::OperandsDiffer, range, spelling(op), describe(lhs), describe(rhs),
                 "`+` joins two tuples, and `*` repeats one by a number on its right that is known while compiling");
    return error(range);
  }
  int64_t count = std::max<int64_t>(rhs.constant->asInt(), 0);
  if (count > maxItems / std::max<int64_t>(static_cast<int64_t>(items.size()), 1)) {
    diags.report(diag::ComptimeLimit, range, fmt::format("{} items", maxItems));
    return error(range);
  }
  std::vector<Operand> repeated;
  for (int64_t i = 0; i < count; ++i)
    repeated.insert(repeated.end(), items.begin(), items.end());
  return tuple(std::move(repeated), range);
}

Operand Elaborator::indexList(const Operand &list, const ast::IndexExpr &expr) {
  if (expr.arguments.size() != 1) {
    diags.report(diag::RankMismatch, expr.range, "the index", static_cast<int64_t>(expr.arguments.size()), 1);
    return error(expr.range);
  }
  const ast::Expr &argument = *expr.arguments[0].value;
  auto *slice = argument.as<ast::SliceExpr>();
  if (!slice) {
    Operand index = check(argument);
    if (list.constant && index.constant) {
      Folded item = foldIndex(*list.constant, *index.constant);
      if (item)
        return constant(*item.value, expr.range);
      diags.report(diag::ComptimeError, expr.range, item.error);
      return error(expr.range);
    }
    const Type *item = list.type->kind == TypeKind::TensorList ? types.tensor : types.integer();
    return result(Kind::ListGet, item, expr.range, {materialise(list), intNode(index, "an index")});
  }
  if (slice->step)
    return notSupported(argument.range, "a step in a slice of a list", "build the list in a loop");
  auto bound = [&](const ast::ExprPtr &part, int64_t open) {
    return part ? intNode(check(*part), "a bound of a slice")
                : emitConstant(Value(open), types.integer(), argument.range);
  };
  Node *start = bound(slice->start, 0);
  Node *stop = bound(slice->stop, INT64_MAX);
  return result(Kind::ListSlice, list.type, expr.range, {materialise(list), start, stop});
}

Operand Elaborator::callLen(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("x");
  if (!arguments.finish())
    return error(site.range());
  Operand value = check(*expr);
  if (value.isError())
    return value;
  if (value.isTuple())
    return constant(Value(static_cast<int64_t>(value.items.size())), site.range());
  if (value.constant)
    if (Folded folded = foldCall("len", {*value.constant}))
      return constant(*folded.value, site.range());
  if (!value.type->isList()) {
    diags.report(diag::OperandUnfit, expr->range, site.name, describe(value));
    return error(site.range());
  }
  return result(Kind::ListLength, types.integer(), site.range(), {value.node});
}

Operand Elaborator::callBroadcastShapes(CallSite &site) {
  if (Operand allowed = onlyIn(BodyKind::Op, site); allowed.isError())
    return allowed;
  Arguments arguments(*this, site);
  const ast::Expr *exprs[2] = {arguments.take("a"), arguments.take("b")};
  if (!arguments.finish())
    return error(site.range());
  Node *a = listNode(check(*exprs[0]), "`a`");
  Node *b = listNode(check(*exprs[1]), "`b`");
  return result(Kind::BroadcastShapes, types.list, site.range(), {a, b});
}

Operand Elaborator::listAppend(CallSite &site) {
  Arguments arguments(*this, site);
  const ast::Expr *expr = arguments.take("item");
  if (!arguments.finish())
    return error(site.range());
  const Type *type = site.base.type;
  Operand given = check(*expr);
  Node *item = type->kind == TypeKind::TensorList ? tensorNode(given, "the item") : intNode(given, "the item");
  Operand longer = result(Kind::ListAppend, type, site.range(), {materialise(site.base), item});
  if (!longer.isError())
    checkAssign(*site.call->callee->as<ast::AttributeExpr>()->base, longer, site.range());
  return none(site.range());
}

} // namespace kpkg::compiler
