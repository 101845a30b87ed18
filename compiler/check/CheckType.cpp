// Resolves type annotations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/check/TypeNames.h"
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
  case Struct: {
    std::string text = structure->name();
    for (size_t i = 0; i < bound.size(); ++i)
      text += (i ? ", " : "[") + structure->member(i).text + "=" + (bound[i] ? bound[i]->str() : "?");
    return text + (bound.empty() ? "" : "]");
  }
  case Wrong:
    break;
  }
  return "<error>";
}

/// Returns the type that a foreign or misspelt name probably means; empty if there is none.
static std::string typeMeantBy(const std::string &name) {
  static const std::pair<std::string_view, std::string_view> foreign[] = {{"int", "Int"},
                                                                          {"integer", "Int"},
                                                                          {"long", "Int"},
                                                                          {"size_t", "Int"},
                                                                          {"SIMD", "Tile"},
                                                                          {"float", "Float64"},
                                                                          {"Float", "Float64"},
                                                                          {"double", "Float64"},
                                                                          {"Double", "Float64"},
                                                                          {"half", "Float16"},
                                                                          {"str", "String"},
                                                                          {"string", "String"},
                                                                          {"tensor", "Tensor"},
                                                                          {"MaxTensor", "Tensor"},
                                                                          {"LayoutTensor", "Tensor"},
                                                                          {"list", "List[Int]"},
                                                                          {"dtype", "DType"},
                                                                          {"IntTuple", "List[Int]"},
                                                                          {"TensorList", "List[Tensor]"}};
  for (auto [word, type] : foreign)
    if (word == name)
      return std::string(type);
  if (auto dtype = dtypeOfValueName(name))
    return std::string(typeNameOf(*dtype));
  std::vector<std::string> known(std::begin(typeNames), std::end(typeNames));
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

namespace {

const TypeSpec wrong{TypeSpec::Wrong, nullptr};

/// Resolves an annotation with brackets, such as `Tensor[T, 2]`. Each method resolves one type, and its index has as
/// many arguments as the type takes.
class BracketedType {
public:
  BracketedType(Checker &checker, const ast::IndexExpr &index, const Environment &environment)
      : checker(checker), index(index), environment(environment) {}

  TypeSpec resolve(const std::string &name, bool isMut);

private:
  Checker &checker;
  const ast::IndexExpr &index;
  const Environment &environment;

  const ast::Expr &argument(size_t i) const { return *index.arguments[i].value; }
  SourceRange rangeOf(size_t i) const { return index.arguments[i].range; }
  std::optional<Value> value(size_t i) { return checker.evaluator.evaluate(argument(i), environment); }
  std::optional<DType> element(size_t i);
  TypeSpec scalar();
  TypeSpec tensor(bool isMut);
  TypeSpec tile();
  TypeSpec list();
  TypeSpec optional(bool isMut);
  TypeSpec tuple();
};

std::optional<DType> BracketedType::element(size_t i) {
  std::optional<DType> dtype;
  if (auto *name = argument(i).as<ast::NameExpr>();
      name && environment.lookup(name->name, name->range).kind == Meaning::Unknown)
    dtype = dtypeOfTypeName(name->name);
  auto known = dtype ? std::optional(Value(*dtype)) : value(i);
  if (!known)
    return std::nullopt;
  if (!known->isDType()) {
    checker.diags.report(diag::TypeMismatch, rangeOf(i), "the element type", kindName(*known), "DType");
    return std::nullopt;
  }
  if (isPacked(known->asDType())) {
    checker.diags.report(diag::PackedElement, rangeOf(i), valueNameOf(known->asDType()), "an element type");
    return std::nullopt;
  }
  return known->asDType();
}

TypeSpec BracketedType::scalar() {
  auto dtype = element(0);
  return dtype ? exactly(checker.types.scalar(*dtype)) : wrong;
}

TypeSpec BracketedType::tensor(bool isMut) {
  auto dtype = element(0);
  auto rank = value(1);
  if (!dtype || !rank)
    return wrong;
  if (!rank->isInt() || rank->asInt() < 0 || rank->asInt() > 16) {
    checker.diags.report(diag::TypeMismatch, rangeOf(1), "the rank", rank->str(), "an Int from 0 to 16");
    return wrong;
  }
  return exactly(checker.types.view(*dtype, static_cast<int>(rank->asInt()), isMut));
}

TypeSpec BracketedType::tile() {
  auto dtype = element(0);
  std::vector<int64_t> shape;
  for (size_t i = 1; i < index.arguments.size(); ++i) {
    auto extent = value(i);
    if (!extent)
      return wrong;
    if (!extent->isInt() || extent->asInt() <= 0) {
      checker.diags.report(diag::TypeMismatch, rangeOf(i), "an extent", extent->str(), "a positive Int");
      return wrong;
    }
    shape.push_back(extent->asInt());
  }
  return dtype ? exactly(checker.types.tile(*dtype, std::move(shape))) : wrong;
}

TypeSpec BracketedType::list() {
  auto *item = argument(0).as<ast::NameExpr>();
  if (item && item->name == "Int")
    return exactly(checker.types.list);
  if (item && item->name == "Tensor")
    return exactly(checker.types.tensorList);
  checker.diags.report(diag::NotSupportedYet, index.range, "a list of other things than Int and Tensor",
                       "use `List[Int]` or `List[Tensor]`");
  return wrong;
}

TypeSpec BracketedType::optional(bool isMut) {
  TypeSpec of = checker.resolveType(argument(0), environment, isMut);
  if (of.kind == TypeSpec::AnyTensor)
    return exactly(checker.types.optionalTensor);
  if (of.kind == TypeSpec::Exact && of.exact->isScalar(DType::Float64))
    return exactly(checker.types.optionalFloat);
  if (of.kind == TypeSpec::Exact && of.exact->kind == TypeKind::DType)
    return exactly(checker.types.optionalDType);
  if (of.kind == TypeSpec::Exact && of.exact->kind == TypeKind::View)
    return exactly(checker.types.optional(of.exact));
  if (of.kind != TypeSpec::Wrong)
    checker.diags.report(diag::NotSupportedYet, index.range, "`Optional` of " + of.str(),
                         "use `Optional[Tensor]`, `Optional[Float64]`, `Optional[DType]`, in kernels "
                         "`Optional[Tensor[T, rank]]`, or a default value");
  return wrong;
}

TypeSpec BracketedType::tuple() {
  std::vector<const Type *> items;
  for (size_t i = 0; i < index.arguments.size(); ++i) {
    TypeSpec item = checker.resolveType(argument(i), environment);
    if (item.kind == TypeSpec::Wrong)
      return wrong;
    if (item.kind == TypeSpec::Exact)
      items.push_back(item.exact->isNone() ? checker.types.optionalTensor
                                           : item.exact); // `None` is an optional that is always absent
    else if (item.kind == TypeSpec::AnyTensor)
      items.push_back(checker.types.tensor);
    else
      return {TypeSpec::Any, nullptr}; // Tuple[Tile, Tile]: the returned value determines the type
  }
  return exactly(checker.types.tuple(std::move(items)));
}

TypeSpec BracketedType::resolve(const std::string &name, bool isMut) {
  size_t count = index.arguments.size();
  if (name == "Scalar" && count == 1)
    return scalar();
  if (name == "Tensor" && count == 1) {
    checker.diags.report(diag::MissingArgument, index.range, "Tensor[...]", "rank");
    return wrong;
  }
  if (name == "Tensor" && count == 2)
    return tensor(isMut);
  if (name == "Tile" && count >= 2)
    return tile();
  if (name == "List" && count == 1)
    return list();
  if (name == "Optional" && count == 1)
    return optional(isMut);
  if (name == "Tuple" && count >= 1)
    return tuple();
  reportNotAType(checker.diags, index.range, name + "[...]");
  return wrong;
}

/// Resolves an annotation that is a name.
TypeSpec namedType(TypeTable &types, DiagnosticEngine &diags, SourceRange range, const std::string &name) {
  if (auto dtype = dtypeOfTypeName(name)) {
    if (!isPacked(*dtype))
      return exactly(types.scalar(*dtype));
    diags.report(diag::PackedElement, range, valueNameOf(*dtype), "a scalar");
    return wrong;
  }
  if (name == "Tensor")
    return {TypeSpec::AnyTensor, nullptr};
  if (name == "Tile")
    return {TypeSpec::AnyTile, nullptr};
  if (name == "Scalar")
    return {TypeSpec::AnyScalar, nullptr};
  if (name == "String")
    return exactly(types.string);
  if (name == "DType")
    return exactly(types.dtype);
  if (name == "Function")
    return exactly(types.function);
  bool needsBrackets = name == "List" || name == "Optional" || name == "Tuple";
  reportNotAType(diags, range, needsBrackets ? name + "` without `[...]" : name);
  return wrong;
}

} // namespace

TypeSpec Checker::resolveType(const ast::Expr &expr, const Environment &environment, bool isMut) {
  if (expr.is<ast::ErrorExpr>())
    return wrong;
  if (expr.is<ast::NoneLiteral>())
    return exactly(types.none);
  auto *index = expr.as<ast::IndexExpr>();
  if (const StructEntity *structure = structNamedBy(expr, environment)) {
    TypeSpec spec{TypeSpec::Struct, nullptr, structure};
    auto bound = index ? structArguments(*structure, *index, environment) : std::vector<std::optional<Value>>();
    if (!bound)
      return wrong;
    spec.bound = std::move(*bound);
    return spec;
  }
  if (auto *name = expr.as<ast::NameExpr>())
    return namedType(types, diags, expr.range, name->name);
  auto *base = index ? index->base->as<ast::NameExpr>() : nullptr;
  if (!base) {
    auto *attribute = expr.as<ast::AttributeExpr>(); // such as Triton's tl.constexpr
    auto *module = attribute ? attribute->base->as<ast::NameExpr>() : nullptr;
    reportNotAType(diags, expr.range, module ? module->name + "." + attribute->attribute.text : "this");
    return wrong;
  }
  for (const ast::Argument &argument : index->arguments)
    if (argument.name) {
      reportNotAType(diags, argument.range, argument.name.text + "=");
      return wrong;
    }
  return BracketedType(*this, *index, environment).resolve(base->name, isMut);
}

} // namespace kpkg::compiler
