// Checks expressions: names, literals, attributes, conditionals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"
#include "compiler/check/Observer.h"
#include "compiler/comptime/Fold.h"
#include "compiler/diag/NearestName.h"

#include <algorithm>

namespace kpkg::compiler {

std::optional<Value> Elaborator::comptime(const ast::Expr &expr) {
  auto value = checker.evaluator.evaluate(expr, *scope);
  if (value && !value->isWhole()) {
    diags.report(diag::NotComptime, expr.range, pathText(expr));
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> Elaborator::comptimeInt(const ast::Expr &expr) {
  auto value = comptime(expr);
  if (!value)
    return std::nullopt;
  if (!value->isInt()) {
    diags.report(diag::TypeMismatch, expr.range, "this", kindName(*value), "Int");
    return std::nullopt;
  }
  return value->asInt();
}

std::optional<DType> Elaborator::comptimeDType(const ast::Expr &expr) {
  // `Float32` names the same element type as `float32`; `Int` has no other name.
  if (auto *name = expr.as<ast::NameExpr>())
    if (auto dtype = dtypeOfTypeName(name->name);
        dtype && scope->lookup(name->name, expr.range).kind == Meaning::Unknown)
      return dtype;
  auto value = comptime(expr);
  if (!value)
    return std::nullopt;
  if (!value->isDType()) {
    diags.report(diag::TypeMismatch, expr.range, "this", kindName(*value), "DType");
    return std::nullopt;
  }
  return value->asDType();
}

std::optional<DType> Elaborator::elementDType(const ast::Expr &expr, std::string_view what) {
  auto element = comptimeDType(expr);
  if (!element || !isPacked(*element))
    return element;
  diags.report(diag::PackedElement, expr.range, valueNameOf(*element), what);
  return std::nullopt;
}

Operand Elaborator::checkName(const ast::NameExpr &expr) {
  if (const Binding *binding = scope->find(expr.name))
    return valueOf(*binding, expr.range);
  Meaning meaning = scope->lookup(expr.name, expr.range);
  if (meaning.kind == Meaning::Known)
    return constant(meaning.value, expr.range);
  if (meaning.kind == Meaning::Unknown) {
    if (auto value = builtinConstant(expr.name))
      return constant(*value, expr.range);
    reportUnknownName(expr.name, expr.range);
  }
  return error(expr.range);
}

void Elaborator::reportUnknownName(const std::string &name, SourceRange range) {
  std::vector<std::string> names = {
#define BUILTIN(name, handler) #name,
#define SAME(name, handler) #name,
#include "compiler/check/Builtins.def"
  };
  names.insert(names.end(), builtinConstantNames().begin(), builtinConstantNames().end());
  scope->addNames(names);
  compiler::reportUnknownName(diags, name, range, names);
}

Operand Elaborator::checkAttribute(const ast::AttributeExpr &expr) {
  const std::string &name = expr.attribute.text;
  if (auto *base = expr.base->as<ast::NameExpr>(); base && !scope->find(base->name)) {
    Meaning meaning = scope->lookupMember(base->name, name, expr.attribute.range);
    if (meaning.kind == Meaning::Known)
      return constant(meaning.value, expr.range);
    if (meaning.kind == Meaning::Reported)
      return error(expr.range);
    if (base->name == "block_idx")
      return gridCoordinate(expr, Kind::BlockIndex);
    if (base->name == "grid_dim")
      return gridCoordinate(expr, Kind::GridSize);
    if (base->name == "thread_idx" || base->name == "block_dim" || base->name == "global_idx")
      return threadCoordinate(expr);
  }
  Operand base = check(*expr.base);
  if (base.isError())
    return base;
  if (base.isStruct())
    return memberOf(base, expr);
  if (base.constant) {
    Folded folded = foldAttribute(*base.constant, name);
    if (folded)
      return constant(*folded.value, expr.range);
  }
  switch (base.type->kind) {
  case TypeKind::Tile:
    if (name == "T") {
      CallSite site;
      if (base.type->shape.size() == 2)
        return result(Kind::Permute, types.tile(base.type->element, {base.type->shape[1], base.type->shape[0]}),
                      expr.range, {base.node}, {1, 0});
      diags.report(diag::RankMismatch, expr.range, "`.T`", static_cast<int64_t>(base.type->shape.size()), 2);
      return error(expr.range);
    }
    if (auto value = typeAttribute(*base.type, name))
      return constant(*value, expr.range);
    break;
  case TypeKind::Scalar:
  case TypeKind::View:
    if (name == "dtype")
      return constant(Value(base.type->element), expr.range);
    if (name == "rank" && !base.type->isScalar())
      return constant(Value(int64_t(base.type->rank)), expr.range);
    if (base.type->kind == TypeKind::View && (name == "shape" || name == "stride")) {
      diags.report(diag::NotSupportedYet, expr.range, fmt::format("`.{}` without an index in a kernel", name),
                   fmt::format("write `.{}[i]`", name));
      return error(expr.range);
    }
    break;
  case TypeKind::Tensor:
  case TypeKind::Optional:
    if (base.type->isOptionalFloat())
      break;
    if (!base.type->isOptionalDType())
      return tensorAttribute(base, expr);
    [[fallthrough]];
  case TypeKind::DType:
    if (base.node && name == "is_float")
      return result(Kind::DTypeIsFloat, types.boolean(), expr.range, {base.node});
    if (base.node && name == "bits") {
      Node *bytes = emit(Kind::DTypeSize, types.integer(), expr.range, {base.node});
      return result(Kind::Mul, types.integer(), expr.range,
                    {bytes, emitConstant(Value(int64_t(8)), types.integer(), expr.range)});
    }
    break;
  default:
    break;
  }
  reportUnknownAttribute(diags, describe(base), name, expr.attribute.range,
                         {"shape", "stride", "dtype", "rank", "is_float", "bits"});
  return error(expr.range);
}

Operand Elaborator::checkIndex(const ast::IndexExpr &expr) {
  if (auto *attribute = expr.base->as<ast::AttributeExpr>()) {
    bool isShape = attribute->attribute.text == "shape", isStride = attribute->attribute.text == "stride";
    if (isShape || isStride) {
      Operand base = check(*attribute->base);
      if (base.isError())
        return base;
      if (base.type->kind == TypeKind::View)
        return viewQuery(isShape ? Kind::ViewShape : Kind::ViewStride, base, expr);
      bool oneIndex = expr.arguments.size() == 1 && !expr.arguments[0].value->is<ast::SliceExpr>();
      if ((base.type->isTensor() || base.type->isOptionalTensor()) && oneIndex)
        return tensorQuery(isShape ? Kind::Extent : Kind::StrideOf, base, expr);
    }
  }
  Operand base = check(*expr.base);
  if (base.isError())
    return base;
  for (const ast::Argument &argument : expr.arguments)
    if (argument.name) {
      diags.report(diag::UnknownArgument, argument.range, "an index", argument.name.text);
      return error(expr.range);
    }
  if (base.type->kind == TypeKind::View)
    return indexView(base, expr);
  if (base.type->isTile())
    return indexTile(base, expr);
  if (base.type->isTensor() || base.type->isOptionalTensor())
    return indexTensor(base, expr);
  if (base.type->isList())
    return indexList(base, expr);
  if (base.isTuple()) {
    std::optional<size_t> number = itemNumber(expr, base.items.size());
    return number ? base.items[*number] : error(expr.range);
  }
  if (base.constant) {
    auto at = expr.arguments.size() == 1 ? comptimeInt(*expr.arguments[0].value) : std::nullopt;
    if (!at)
      return error(expr.range);
    Folded item = foldIndex(*base.constant, Value(*at));
    if (item)
      return constant(*item.value, expr.range);
    diags.report(diag::ComptimeError, expr.range, item.error);
    return error(expr.range);
  }
  diags.report(diag::NotIndexable, expr.range, describe(base));
  return error(expr.range);
}

Operand Elaborator::checkConditional(const ast::ConditionalExpr &expr) {
  Operand chosen = check(*expr.condition);
  if (chosen.isError())
    return error(expr.range);
  if (chosen.constant && chosen.constant->isBool())
    return check(chosen.constant->asBool() ? *expr.thenValue : *expr.elseValue);
  Node *test = condition(chosen, expr.condition->range);
  if (!test)
    return error(expr.range);
  Operand sides[2];
  std::unique_ptr<hir::Block> blocks[2];
  ValueRanges::State before = valueRanges.save(), after[2];
  for (int i = 0; i < 2; ++i) {
    valueRanges.restore(before);
    valueRanges.assume(test, i == 0);
    blocks[i] = inBlock([&] { sides[i] = check(i == 0 ? *expr.thenValue : *expr.elseValue); });
    after[i] = valueRanges.save();
  }
  valueRanges.restore(before);
  if (sides[0].isError() || sides[1].isError())
    return error(expr.range);
  // The common type of both sides.
  const Type *type = nullptr;
  auto isTensor = [](const Operand &operand) { return operand.type->isTensor() || operand.type->isOptionalTensor(); };
  if (sides[0].type->isNumeric() && sides[1].type->isNumeric()) {
    auto element = common(sides[0], sides[1], "if", expr.range);
    auto shape = broadcastShapes(sides[0].type, sides[1].type, "if", expr.range);
    if (!element || !shape)
      return error(expr.range);
    type = shape->empty() ? types.scalar(*element) : types.tile(*element, *shape);
  } else if ((sides[0].type->isOptionalFloat() && sides[1].type->isScalar()) ||
             (sides[0].type->isScalar() && sides[1].type->isOptionalFloat())) {
    type = types.scalar(DType::Float64); // one side is present where it is used
  } else if ((sides[0].type->isOptionalDType() && sides[1].type->kind == TypeKind::DType) ||
             (sides[0].type->kind == TypeKind::DType && sides[1].type->isOptionalDType())) {
    type = types.dtype; // likewise
  } else if (sides[0].type->isTensor() && sides[1].type->isTensor()) {
    type = types.tensor;
  } else if ((isTensor(sides[0]) || sides[0].isNone()) && (isTensor(sides[1]) || sides[1].isNone())) {
    type = types.optionalTensor;
  } else if (sides[0].type == sides[1].type && !sides[0].isTuple() && !sides[0].isStruct() &&
             sides[0].type->kind != TypeKind::View && sides[0].type->kind != TypeKind::Window) {
    type = sides[0].type;
  } else {
    diags.report(diag::OperandsDiffer, expr.range, "if", describe(sides[0]), describe(sides[1]),
                 "both sides must have one type");
    return error(expr.range);
  }
  hir::Local *local = newLocal("if", type);
  Node *node = emit(Kind::If, types.none, expr.range, {test});
  hir::Block *outer = block;
  for (int i = 0; i < 2; ++i) {
    valueRanges.restore(std::move(after[i]));
    block = blocks[i].get();
    Node *value = type->isNumeric() && sides[i].type->isNumeric() ? numberAs(sides[i], type->element, type->shape)
                                                                  : convert(sides[i], type, "this value");
    if (value)
      setLocal(local, value, sides[i].range);
    node->regions.push_back(std::move(blocks[i]));
    after[i] = valueRanges.save();
  }
  block = outer;
  valueRanges.join(after[0], true, after[1], true);
  return runTime(getLocal(local, expr.range));
}

Operand Elaborator::checkLogical(const ast::LogicalExpr &expr) {
  Operand lhs = check(*expr.lhs);
  if (lhs.isError())
    return error(expr.range);
  if (lhs.constant && lhs.constant->isBool()) {
    if (lhs.constant->asBool() != expr.isAnd)
      return lhs;
    Operand rhs = check(*expr.rhs);
    if (!rhs.isError() && !rhs.type->isScalar(DType::Bool)) {
      reportNoCondition(rhs, expr.rhs->range);
      return error(expr.range);
    }
    return rhs;
  }
  Node *left = condition(lhs, expr.lhs->range);
  if (!left)
    return error(expr.range);
  ValueRanges::State before = valueRanges.save();
  valueRanges.assume(left, expr.isAnd);
  Node *right = nullptr;
  auto inner = inBlock([&] { right = condition(check(*expr.rhs), expr.rhs->range); });
  valueRanges.restore(before);
  if (!right)
    return error(expr.range);
  inner->yields = {right};
  Node *node = emit(expr.isAnd ? Kind::And : Kind::Or, types.boolean(), expr.range, {left});
  node->regions.push_back(std::move(inner));
  return runTime(node);
}

void Elaborator::observe(SourceRange range, const Operand &operand) {
  if (checker.observer && !operand.isError())
    checker.observer->typed(range, *operand.type, operand.constant ? &*operand.constant : nullptr);
}

void Elaborator::nameValue(SourceRange name, Node *value) {
  if (checker.observer && value)
    value->names.push_back(name);
}

Operand Elaborator::check(const ast::Expr &expr) {
  Operand operand = checkByKind(expr);
  observe(expr.range, operand);
  return operand;
}

Operand Elaborator::checkByKind(const ast::Expr &expr) {
  switch (expr.kind) {
  case ast::ExprKind::IntLiteral:
  case ast::ExprKind::FloatLiteral:
  case ast::ExprKind::StringLiteral:
  case ast::ExprKind::BoolLiteral:
  case ast::ExprKind::NoneLiteral: {
    auto value = comptime(expr);
    return value ? constant(std::move(*value), expr.range) : error(expr.range);
  }
  case ast::ExprKind::NameExpr:
    return checkName(*expr.as<ast::NameExpr>());
  case ast::ExprKind::UnaryExpr:
    return checkUnary(*expr.as<ast::UnaryExpr>());
  case ast::ExprKind::BinaryExpr: {
    auto &operation = *expr.as<ast::BinaryExpr>();
    Operand lhs = check(*operation.lhs);
    Operand rhs = check(*operation.rhs);
    Operand value = binary(operation.op, lhs, rhs, operation.opRange);
    value.range = expr.range;
    return value;
  }
  case ast::ExprKind::LogicalExpr:
    return checkLogical(*expr.as<ast::LogicalExpr>());
  case ast::ExprKind::CompareExpr:
    return checkCompare(*expr.as<ast::CompareExpr>());
  case ast::ExprKind::ConditionalExpr:
    return checkConditional(*expr.as<ast::ConditionalExpr>());
  case ast::ExprKind::CallExpr:
    return checkCall(*expr.as<ast::CallExpr>());
  case ast::ExprKind::IndexExpr:
    return checkIndex(*expr.as<ast::IndexExpr>());
  case ast::ExprKind::AttributeExpr:
    return checkAttribute(*expr.as<ast::AttributeExpr>());
  case ast::ExprKind::TupleExpr: {
    std::vector<Operand> items;
    for (const ast::ExprPtr &element : expr.as<ast::TupleExpr>()->elements)
      items.push_back(check(*element));
    return tuple(std::move(items), expr.range);
  }
  case ast::ExprKind::ListExpr:
    return checkList(*expr.as<ast::ListExpr>());
  case ast::ExprKind::SliceExpr:
  case ast::ExprKind::EllipsisExpr:
  case ast::ExprKind::DictExpr:
    return notSupported(expr.range, "this expression here",
                        "slices and `...` stand in an index, dictionaries in decorators");
  case ast::ExprKind::ErrorExpr:
    return error(expr.range);
  }
  return error(expr.range);
}

} // namespace kpkg::compiler
