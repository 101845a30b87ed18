// Resolves type annotations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/comptime/Fold.h"
#include "compiler/diag/NearestName.h"

namespace kpkg::compiler {

std::string TypeSpec::str() const {
  switch (kind) {
  case Any:
    return "any type";
  case AnyTile:
    return "Tile";
  case AnyScalar:
    return "Scalar";
  case AnyTensor:
    return "Tensor";
  case Exact:
    return exact->str();
  case Wrong:
    break;
  }
  return "<error>";
}

/// Returns the type that a foreign or misspelt name probably means; empty if there is none.
static std::string typeMeantBy(const std::string &name) {
  static const std::pair<std::string_view, std::string_view> foreign[] = {
      {"int", "Int"},        {"integer", "Int"},      {"long", "Int"},
      {"size_t", "Int"},     {"SIMD", "Tile"},        {"float", "Float64"},
      {"Float", "Float64"},  {"double", "Float64"},   {"Double", "Float64"},
      {"half", "Float16"},   {"str", "String"},       {"string", "String"},
      {"tensor", "Tensor"},  {"MaxTensor", "Tensor"}, {"LayoutTensor", "Tensor"},
      {"list", "List[Int]"}, {"dtype", "DType"},      {"IntTuple", "List[Int]"}};
  for (auto [word, type] : foreign)
    if (word == name)
      return std::string(type);
  if (auto dtype = dtypeOfValueName(name))
    return std::string(typeNameOf(*dtype));
  std::vector<std::string> known = {"Tensor", "Tile",     "Scalar",   "String", "DType",
                                    "List",   "Function", "Optional", "Tuple"};
  for (std::string &type : dtypeTypeNames())
    known.push_back(std::move(type));
  return nearestName(name, known);
}

static void reportNotAType(DiagnosticEngine &diags, SourceRange range, const std::string &text) {
  DiagnosticBuilder report = diags.report(diag::NotAType, range, text);
  if (std::string meant = typeMeantBy(text); !meant.empty())
    report.fix(range, meant);
  else
    report.note(diag::KnownTypes, {});
}

static TypeSpec exactly(const Type *type) { return {TypeSpec::Exact, type}; }

TypeSpec Checker::resolveType(const ast::Expr &expr, const Environment &environment, bool isMut) {
  const TypeSpec wrong{TypeSpec::Wrong, nullptr};
  auto notAType = [&](SourceRange range, const std::string &text) {
    reportNotAType(diags, range, text);
    return wrong;
  };
  if (expr.is<ast::ErrorExpr>())
    return wrong;
  if (expr.is<ast::NoneLiteral>())
    return exactly(types.none);
  if (auto *name = expr.as<ast::NameExpr>()) {
    const std::string &text = name->name;
    if (auto dtype = dtypeOfTypeName(text))
      return exactly(types.scalar(*dtype));
    if (text == "Tensor")
      return {TypeSpec::AnyTensor, nullptr};
    if (text == "Tile")
      return {TypeSpec::AnyTile, nullptr};
    if (text == "Scalar")
      return {TypeSpec::AnyScalar, nullptr};
    if (text == "String")
      return exactly(types.string);
    if (text == "DType")
      return exactly(types.dtype);
    if (text == "Function")
      return exactly(types.function);
    if (text == "List" || text == "Optional" || text == "Tuple")
      return notAType(expr.range, text + "` without `[...]");
    return notAType(expr.range, text);
  }
  auto *index = expr.as<ast::IndexExpr>();
  auto *base = index ? index->base->as<ast::NameExpr>() : nullptr;
  if (!base)
    return notAType(expr.range, "this");
  for (const ast::Argument &argument : index->arguments)
    if (argument.name)
      return notAType(argument.range, argument.name.text + "=");
  auto value = [&](size_t i) -> std::optional<Value> {
    return evaluator.evaluate(*index->arguments[i].value, environment);
  };
  auto element = [&](size_t i) -> std::optional<DType> {
    if (auto *name = index->arguments[i].value->as<ast::NameExpr>())
      if (auto dtype = dtypeOfTypeName(name->name);
          dtype && environment.lookup(name->name, name->range).kind == Meaning::Unknown)
        return dtype;
    auto known = value(i);
    if (known && !known->isDType()) {
      diags.report(diag::TypeMismatch, index->arguments[i].range, "the element type", kindName(*known), "DType");
      return std::nullopt;
    }
    return known ? std::optional(known->asDType()) : std::nullopt;
  };
  size_t count = index->arguments.size();
  const std::string &text = base->name;
  if (text == "Scalar" && count == 1) {
    auto dtype = element(0);
    return dtype ? exactly(types.scalar(*dtype)) : wrong;
  }
  if (text == "Tensor" && count == 1) {
    diags.report(diag::MissingArgument, expr.range, "Tensor[...]", "rank");
    return wrong;
  }
  if (text == "Tensor" && count == 2) {
    auto dtype = element(0);
    auto rank = value(1);
    if (!dtype || !rank)
      return wrong;
    if (!rank->isInt() || rank->asInt() < 0 || rank->asInt() > 16) {
      diags.report(diag::TypeMismatch, index->arguments[1].range, "the rank", rank->str(), "an Int from 0 to 16");
      return wrong;
    }
    return exactly(types.view(*dtype, static_cast<int>(rank->asInt()), isMut));
  }
  if (text == "Tile" && count >= 2) {
    auto dtype = element(0);
    std::vector<int64_t> shape;
    for (size_t i = 1; i < count; ++i) {
      auto extent = value(i);
      if (!extent)
        return wrong;
      if (!extent->isInt() || extent->asInt() <= 0) {
        diags.report(diag::TypeMismatch, index->arguments[i].range, "an extent", extent->str(), "a positive Int");
        return wrong;
      }
      shape.push_back(extent->asInt());
    }
    return dtype ? exactly(types.tile(*dtype, std::move(shape))) : wrong;
  }
  if (text == "List" && count == 1) {
    auto *item = index->arguments[0].value->as<ast::NameExpr>();
    if (item && item->name == "Int")
      return exactly(types.list);
    diags.report(diag::NotSupportedYet, expr.range, "a list of other things than Int", "use `List[Int]`");
    return wrong;
  }
  if (text == "Optional" && count == 1) {
    TypeSpec of = resolveType(*index->arguments[0].value, environment);
    if (of.kind == TypeSpec::AnyTensor)
      return exactly(types.optionalTensor);
    if (of.kind == TypeSpec::Exact && of.exact->isScalar(DType::Float64))
      return exactly(types.optionalFloat);
    if (of.kind != TypeSpec::Wrong)
      diags.report(diag::NotSupportedYet, expr.range, "`Optional` of " + of.str(),
                   "use `Optional[Tensor]`, `Optional[Float64]`, or a default value");
    return wrong;
  }
  if (text == "Tuple" && count >= 1) {
    std::vector<const Type *> items;
    for (size_t i = 0; i < count; ++i) {
      TypeSpec item = resolveType(*index->arguments[i].value, environment);
      if (item.kind == TypeSpec::Wrong)
        return wrong;
      if (item.kind == TypeSpec::Exact)
        items.push_back(item.exact->isNone() ? types.optionalTensor
                                             : item.exact); // `None` is an optional that is always absent
      else if (item.kind == TypeSpec::AnyTensor)
        items.push_back(types.tensor);
      else
        return {TypeSpec::Any, nullptr}; // Tuple[Tile, Tile]: the returned value determines the type
    }
    return exactly(types.tuple(std::move(items)));
  }
  return notAType(expr.range, text + "[...]");
}

} // namespace kpkg::compiler
