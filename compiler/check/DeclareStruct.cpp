// Checks declarations of structs, and describes structs among the parameters of kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Elaborator.h"
#include "compiler/check/TypeNames.h"
#include "compiler/comptime/Fold.h"

#include <algorithm>

namespace kpkg::compiler {

std::string_view typeOfKind(std::string_view kind) {
  return kind == "dtype"      ? "DType"
         : kind == "int"      ? "Int"
         : kind == "bool"     ? "Bool"
         : kind == "function" ? "Function"
                              : "String";
}

static bool isTypeName(std::string_view name) {
  return std::find(std::begin(typeNames), std::end(typeNames), name) != std::end(typeNames) ||
         dtypeOfTypeName(name).has_value();
}

const StructEntity *Checker::structNamedBy(const ast::Expr &type, const Environment &environment) {
  auto *index = type.as<ast::IndexExpr>();
  const ast::Expr &base = index ? *index->base : type;
  Meaning meaning;
  if (auto *name = base.as<ast::NameExpr>(); name && !isTypeName(name->name)) {
    meaning = environment.lookup(name->name, name->range);
  } else if (auto *attribute = base.as<ast::AttributeExpr>()) {
    if (auto *module = attribute->base->as<ast::NameExpr>())
      meaning = environment.lookupMember(module->name, attribute->attribute.text, attribute->range);
  }
  return meaning.kind == Meaning::Known && meaning.value.isStructName() ? meaning.value.asStructName() : nullptr;
}

/// Returns the way from a struct back to itself through its fields, as the first field of it; null if there is none.
static const ast::Parameter *fieldOfItself(const StructEntity &structure) {
  std::vector<const StructEntity *> seen;
  std::function<bool(const StructEntity &)> leadsBack = [&](const StructEntity &from) {
    if (&from == &structure)
      return true;
    if (std::find(seen.begin(), seen.end(), &from) != seen.end())
      return false;
    seen.push_back(&from);
    for (const ast::Parameter &field : from.syntax->fields)
      if (const StructEntity *of = field.type ? Checker::structNamedBy(*field.type, *from.module) : nullptr)
        if (leadsBack(*of))
          return true;
    return false;
  };
  for (const ast::Parameter &field : structure.syntax->fields)
    if (const StructEntity *of = field.type ? Checker::structNamedBy(*field.type, *structure.module) : nullptr)
      if (leadsBack(*of))
        return &field;
  return nullptr;
}

void Checker::declareMethod(const StructEntity &structure, const ast::FunctionStmt &method) {
  for (const ast::Decorator &decorator : method.decorators)
    diags.report(diag::UnknownDecorator, decorator.nameRange, decorator.name);
  if (method.name.text.starts_with("__"))
    diags.report(diag::NotInLanguage, method.name.range, method.name.text,
                 fmt::format("`{}(...)` takes the values of the fields, and operators take numbers and tiles",
                             structure.name()));
  else if (method.parameters.empty() || method.parameters[0].name.text != "self")
    diags.report(diag::MethodWithoutSelf, method.signatureRange, method.name.text);
}

bool Checker::declareStruct(const StructEntity &structure) {
  const ast::StructStmt &syntax = *structure.syntax;
  if (isTypeName(syntax.name.text) || syntax.name.text == "Self")
    diags.report(diag::ReservedWord, syntax.name.range, syntax.name.text);
  std::map<std::string, SourceRange> names;
  auto declare = [&](const ast::Identifier &name) {
    auto [known, isNew] = names.emplace(name.text, name.range);
    if (!isNew)
      diags.report(diag::Redefined, name.range, name.text).note(diag::DeclaredHere, known->second, name.text);
  };
  for (const ast::ComptimeParameter &parameter : syntax.comptimeParameters) {
    declare(parameter.name);
    parameterKind(parameter, *structure.module, "struct");
  }
  for (const ast::Parameter &field : syntax.fields) {
    declare(field.name);
    if (!field.type)
      diags.report(diag::NeedsType, field.range, field.name.text);
    else if (syntax.comptimeParameters.empty()) // types of others may depend on their values
      resolveType(*field.type, *structure.module);
  }
  for (const auto &method : syntax.methods) {
    declare(method->name);
    declareMethod(structure, *method);
  }
  const ast::Parameter *itself = fieldOfItself(structure);
  if (itself)
    diags.report(diag::RecursiveStruct, itself->range, structure.name(), itself->name.text);
  return !itself;
}

static Binding comptimeBinding(const Value &value, const Type *type) {
  Binding binding;
  binding.operand.type = type;
  binding.operand.constant = value;
  return binding;
}

BodyScope Checker::structScope(const StructEntity &structure, const std::vector<Value> &values) {
  BodyScope scope(*structure.module);
  for (size_t i = 0; i < values.size(); ++i)
    if (!values[i].isNone())
      scope.declare(structure.member(i).text, comptimeBinding(values[i], types.none));
  return scope;
}

std::optional<std::vector<std::optional<Value>>>
Checker::structArguments(const StructEntity &structure, const ast::IndexExpr &index, const Environment &environment) {
  const auto &parameters = structure.syntax->comptimeParameters;
  std::vector<const ast::Expr *> given(parameters.size());
  for (size_t i = 0; i < index.arguments.size(); ++i) {
    const ast::Argument &argument = index.arguments[i];
    size_t at = argument.name ? structure.find(argument.name.text) : i;
    if (at >= parameters.size()) {
      if (argument.name)
        diags.report(diag::UnknownArgument, argument.range, structure.name(), argument.name.text);
      else
        diags.report(diag::TooManyArguments, argument.range, structure.name(), int64_t(parameters.size()));
      return std::nullopt;
    }
    given[at] = argument.value.get();
  }
  std::vector<Value> values;
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto kind = parameterKind(parameters[i], *structure.module, "struct");
    if (!kind)
      return std::nullopt;
    std::optional<Value> value;
    auto *name = given[i] ? given[i]->as<ast::NameExpr>() : nullptr;
    if (auto dtype = name ? dtypeOfTypeName(name->name) : std::nullopt; dtype && *kind == "dtype")
      value = Value(*dtype);
    else if (given[i])
      value = evaluator.evaluate(*given[i], environment);
    else if (parameters[i].defaultValue)
      value = evaluator.evaluate(*parameters[i].defaultValue, structScope(structure, values));
    else
      diags.report(diag::MissingArgument, index.range, structure.name(), parameters[i].name.text);
    if (value && !isOfKind(*kind, *value)) {
      diags.report(diag::TypeMismatch, given[i] ? given[i]->range : parameters[i].range,
                   fmt::format("`{}` of `{}`", parameters[i].name.text, structure.name()), kindName(*value),
                   typeOfKind(*kind));
      value.reset();
    }
    if (!value)
      return std::nullopt;
    values.push_back(std::move(*value));
  }
  return std::vector<std::optional<Value>>(values.begin(), values.end());
}

void Checker::addStructParameters(const ast::Expr &type, const Environment &environment, const StructParameter &at,
                                  std::vector<StructParameter> &found) {
  const StructEntity *structure = structNamedBy(type, environment);
  if (!structure)
    return;
  for (size_t i = 0; i < structure->memberCount(); ++i) {
    StructParameter next = at;
    next.name += "." + structure->member(i).text;
    next.members.push_back(i);
    next.structure = structure;
    if (i >= structure->parameterCount()) {
      const ast::Parameter &field = structure->syntax->fields[i - structure->parameterCount()];
      if (field.type)
        addStructParameters(*field.type, *structure->module, next, found);
    } else if (!type.is<ast::IndexExpr>()) {
      found.push_back(std::move(next));
    }
  }
}

const std::vector<StructParameter> &Checker::structParameters(const FunctionEntity &kernel) {
  auto [known, isNew] = structParametersOf.try_emplace(&kernel);
  if (isNew)
    for (size_t i = 0; i < kernel.syntax->parameters.size(); ++i)
      if (const ast::Parameter &parameter = kernel.syntax->parameters[i]; parameter.type)
        addStructParameters(*parameter.type, *kernel.module, {parameter.name.text, i, {}, nullptr}, known->second);
  return known->second;
}

BodyScope Checker::defaultScope(const FunctionEntity &function, size_t number, const std::vector<Value> &before) {
  size_t own = function.syntax->comptimeParameters.size();
  const auto &parameters = structParameters(function);
  const StructParameter &wanted = parameters[number - own];
  BodyScope scope(*wanted.structure->module);
  for (size_t i = own; i < before.size(); ++i)
    if (parameters[i - own].owner() == wanted.owner() && !before[i].isNone())
      scope.declare(parameters[i - own].syntax().name.text, comptimeBinding(before[i], types.none));
  return scope;
}

const Type *Checker::kernelStruct(const TypeSpec &spec, const std::string &name, const ast::Parameter &parameter,
                                  const BodyScope &instance) {
  const StructEntity &structure = *spec.structure;
  std::vector<Value> values;
  std::vector<const Type *> members(structure.parameterCount(), types.none);
  for (size_t i = 0; i < structure.parameterCount(); ++i)
    values.push_back(spec.bound.empty() ? instance.lookup(name + "." + structure.member(i).text, {}).value
                                        : *spec.bound[i]);
  BodyScope scope = structScope(structure, values);
  for (const ast::Parameter &field : structure.syntax->fields) {
    std::string fieldName = name + "." + field.name.text;
    if (!field.type) // reported
      return nullptr;
    TypeSpec of = resolveType(*field.type, scope, parameter.isMut);
    const Type *type = nullptr;
    if (of.kind == TypeSpec::Struct)
      type = kernelStruct(of, fieldName, parameter, instance);
    else if (of.kind == TypeSpec::Exact &&
             (of.exact->kind == TypeKind::View || of.exact->isScalar() || of.exact->isOptionalView()))
      type = of.exact;
    else if (of.kind != TypeSpec::Wrong)
      diags.report(diag::KernelFieldType, parameter.range, fieldName, of.str())
          .note(diag::DeclaredHere, field.range, field.name.text);
    if (!type)
      return nullptr;
    members.push_back(type);
  }
  return types.structure(&structure, std::move(values), std::move(members));
}

const Type *Checker::kernelArgumentType(const ast::Parameter &parameter, const BodyScope &instance) {
  TypeSpec spec = resolveType(*parameter.type, instance, parameter.isMut);
  if (spec.kind == TypeSpec::Struct)
    return kernelStruct(spec, parameter.name.text, parameter, instance);
  if (spec.kind == TypeSpec::Exact &&
      (spec.exact->kind == TypeKind::View || spec.exact->isScalar() || spec.exact->isOptionalView()))
    return spec.exact;
  if (spec.kind != TypeSpec::Wrong)
    diags.report(diag::KernelArgumentType, parameter.range, spec.str());
  return nullptr;
}

void Checker::flatten(const FlatArgument &argument, std::vector<FlatArgument> &flat) {
  if (!argument.type->isStruct()) {
    flat.push_back(argument);
    return;
  }
  const ast::StructStmt &syntax = *argument.type->structure->syntax;
  const std::vector<const Type *> &members = argument.type->items;
  const size_t first = members.size() - syntax.fields.size();
  for (size_t i = first; i < members.size(); ++i) {
    const ast::Parameter &field = syntax.fields[i - first];
    std::string prefix = argument.name + ".";
    flatten({prefix + field.name.text, members[i], field.type.get(), &syntax.comptimeParameters, prefix}, flat);
  }
}

} // namespace kpkg::compiler
