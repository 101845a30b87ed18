// Checks values of structs: construction, members, methods. A struct is a bundle of operands, of which nothing is in
// HIR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"
#include "compiler/check/TypeNames.h"
#include "compiler/comptime/Fold.h"
#include "compiler/diag/NearestName.h"

namespace kpkg::compiler {

Operand Elaborator::structOf(const StructEntity &structure, std::vector<Operand> members, SourceRange range) {
  std::vector<Value> parameters;
  std::vector<const Type *> memberTypes;
  for (const Operand &member : members) {
    if (member.isError())
      return error(range);
    if (parameters.size() < structure.parameterCount())
      parameters.push_back(member.constant.value_or(Value()));
    memberTypes.push_back(member.type);
  }
  Operand operand;
  operand.type = types.structure(&structure, std::move(parameters), std::move(memberTypes));
  operand.items = std::move(members);
  operand.range = range;
  return operand;
}

BodyScope Elaborator::scopeOf(const StructEntity &structure, const std::vector<Operand> &members) {
  BodyScope names(*structure.module);
  Binding self;
  self.operand = constant(Value(&structure), structure.syntax->name.range);
  names.declare("Self", std::move(self));
  for (size_t i = 0; i < members.size() && i < structure.parameterCount(); ++i) {
    Binding binding;
    binding.operand = members[i];
    binding.declared = structure.member(i).range;
    observe(binding.declared, binding.operand);
    names.declare(structure.member(i).text, std::move(binding));
  }
  return names;
}

TypeSpec Elaborator::fieldSpec(const ast::Parameter &field, const Environment &names) {
  auto *index = field.type->as<ast::IndexExpr>();
  auto *base = index && kind == BodyKind::Op ? index->base->as<ast::NameExpr>() : nullptr;
  if (base && base->name == "Tensor" && index->arguments.size() == 2)
    return {TypeSpec::AnyTensor};
  auto *of = base && base->name == "Optional" ? index->arguments[0].value->as<ast::IndexExpr>() : nullptr;
  auto *ofName = of ? of->base->as<ast::NameExpr>() : nullptr;
  if (ofName && ofName->name == "Tensor" && index->arguments.size() == 1)
    return {TypeSpec::Exact, types.optionalTensor};
  if (base && base->name == "Scalar")
    return {TypeSpec::AnyScalar};
  return checker.resolveType(*field.type, names, /*isMut=*/false);
}

/// Returns the value of a comptime parameter. On the host it may exist only at run time, as that of a launch.
std::optional<Operand> Elaborator::comptimeMember(const StructEntity &structure, size_t number,
                                                  const std::string &paramKind, const ast::Expr &expr) {
  auto *name = expr.as<ast::NameExpr>();
  bool isTypeName = name && dtypeOfTypeName(name->name) && paramKind == "dtype";
  Operand operand = error(expr.range);
  if (isTypeName) {
    operand = constant(Value(*dtypeOfTypeName(name->name)), expr.range);
  } else if (kind == BodyKind::Op) {
    operand = check(expr);
  } else if (auto value = comptime(expr)) {
    operand = constant(std::move(*value), expr.range);
  }
  if (operand.isError())
    return std::nullopt;
  bool fits = operand.constant       ? Checker::isOfKind(paramKind, *operand.constant)
              : paramKind == "dtype" ? operand.type->kind == TypeKind::DType
              : paramKind == "int"   ? operand.type->isScalar(DType::Int)
              : paramKind == "bool"  ? operand.type->isScalar(DType::Bool)
                                     : paramKind == "string" && operand.type->kind == TypeKind::String;
  if (!fits) {
    diags
        .report(diag::TypeMismatch, expr.range,
                fmt::format("`{}` of `{}`", structure.member(number).text, structure.name()), describe(operand),
                typeOfKind(paramKind))
        .note(diag::DeclaredHere, structure.syntax->comptimeParameters[number].range, structure.member(number).text);
    return std::nullopt;
  }
  return operand;
}

static std::vector<std::string_view> memberNames(const StructEntity &structure, size_t first, size_t end) {
  std::vector<std::string_view> names;
  for (size_t i = first; i < end; ++i)
    names.push_back(structure.member(i).text);
  return names;
}

/// Returns the comptime parameters of a value that is constructed. Nothing after an error.
std::optional<std::vector<Operand>> Elaborator::comptimeMembers(const StructEntity &structure, CallSite &site) {
  static const std::vector<ast::Argument> nothing;
  const auto &parameters = structure.syntax->comptimeParameters;
  const ast::Identifier callee{structure.name(), structure.syntax->signatureRange};
  auto bound = bindByName(callee, site.comptimeArguments ? *site.comptimeArguments : nothing,
                          memberNames(structure, 0, parameters.size()));
  if (!bound)
    return std::nullopt;
  bool isOfSelf = site.name == "Self" && frame->function->owner == &structure;
  std::vector<Operand> members;
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto paramKind = checker.parameterKind(parameters[i], *structure.module, "struct");
    if (!paramKind)
      return std::nullopt;
    const Binding *own = isOfSelf ? scope->find(parameters[i].name.text) : nullptr;
    std::optional<Operand> member;
    if ((*bound)[i]) {
      member = comptimeMember(structure, i, *paramKind, *(*bound)[i]);
    } else if (own) {
      member = valueOf(*own, site.range());
    } else if (parameters[i].defaultValue) {
      auto value = checker.evaluator.evaluate(*parameters[i].defaultValue, scopeOf(structure, members));
      if (value && !Checker::isOfKind(*paramKind, *value))
        diags.report(diag::TypeMismatch, parameters[i].range, "the default", kindName(*value), typeOfKind(*paramKind));
      else if (value)
        member = constant(std::move(*value), site.range());
    } else {
      diags.report(diag::MissingArgument, site.range(), structure.name(), parameters[i].name.text)
          .note(diag::DeclaredHere, callee.range, callee.text);
    }
    if (!member)
      return std::nullopt;
    members.push_back(std::move(*member));
  }
  return members;
}

Operand Elaborator::construct(const StructEntity &structure, CallSite &site) {
  const auto &fields = structure.syntax->fields;
  const ast::Identifier callee{structure.name(), structure.syntax->signatureRange};
  std::optional<std::vector<Operand>> members = comptimeMembers(structure, site);
  auto bound = members ? bindByName(callee, *site.arguments,
                                    memberNames(structure, structure.parameterCount(), structure.memberCount()))
                       : std::nullopt;
  if (!bound)
    return error(site.range());
  BodyScope names = scopeOf(structure, *members);
  for (size_t i = 0; i < fields.size(); ++i) {
    Operand operand = error(site.range());
    if ((*bound)[i]) {
      operand = check(*(*bound)[i]);
    } else if (fields[i].defaultValue) {
      if (auto value = checker.evaluator.evaluate(*fields[i].defaultValue, names))
        operand = constant(std::move(*value), site.range());
    } else {
      diags.report(diag::MissingArgument, site.range(), structure.name(), fields[i].name.text)
          .note(diag::DeclaredHere, callee.range, callee.text);
    }
    auto passed = operand.isError() || !fields[i].type ? std::nullopt
                                                       : passArgument(fields[i], operand, fieldSpec(fields[i], names));
    if (!passed)
      return error(site.range());
    members->push_back(std::move(*passed));
  }
  return structOf(structure, std::move(*members), site.range());
}

void Elaborator::reportUnknownMember(const Operand &base, const std::string &name, SourceRange range) {
  const StructEntity &structure = *base.type->structure;
  std::vector<std::string> known;
  for (size_t i = 0; i < structure.memberCount(); ++i)
    known.push_back(structure.member(i).text);
  for (const FunctionEntity &method : structure.methods)
    known.push_back(method.name());
  reportUnknownAttribute(diags, describe(base), name, range, known);
}

Operand Elaborator::memberOf(const Operand &base, const ast::AttributeExpr &expr) {
  const StructEntity &structure = *base.type->structure;
  const std::string &name = expr.attribute.text;
  size_t number = structure.find(name);
  if (number < base.items.size()) {
    Operand member = base.items[number];
    member.range = expr.range;
    observe(expr.attribute.range, member);
    return member;
  }
  if (structure.method(name))
    return notSupported(expr.range, "a method that is not called", "write `." + name + "(...)`");
  reportUnknownMember(base, name, expr.attribute.range);
  return error(expr.range);
}

std::optional<Operand> Elaborator::callMember(CallSite &site) {
  const StructEntity &structure = *site.base.type->structure;
  if (const FunctionEntity *method = structure.method(site.name))
    return callFunction(*method, site, &site.base);
  size_t number = structure.find(site.name);
  if (number == structure.memberCount())
    return std::nullopt;
  const Operand &member = site.base.items[number];
  if (member.constant && member.constant->isFunction())
    return callFunction(*member.constant->asFunction(), site);
  diags.report(diag::NotCallable, site.nameRange, describe(member));
  return error(site.range());
}

bool Elaborator::isOfStruct(const Operand &operand, const TypeSpec &spec) const {
  if (!operand.isStruct() || operand.type->structure != spec.structure)
    return false;
  for (size_t i = 0; i < spec.bound.size(); ++i)
    if (spec.bound[i] && operand.items[i].constant != spec.bound[i])
      return false;
  return true;
}

/// Returns whether a kernel may write all memory of a value.
bool Elaborator::isWritable(const Operand &operand) {
  for (const Operand &item : operand.items)
    if (!isWritable(item))
      return false;
  return operand.type->kind != TypeKind::View || operand.type->isMut;
}

void Elaborator::leavesOf(const Operand &value, std::vector<Operand> &leaves) {
  if (!value.isStruct()) {
    leaves.push_back(value);
    return;
  }
  for (size_t i = value.type->structure->parameterCount(); i < value.items.size(); ++i)
    leavesOf(value.items[i], leaves);
}

Operand Elaborator::withLeaves(const Operand &shape, const std::vector<Operand> &leaves, size_t &next) {
  if (!shape.isStruct())
    return next < leaves.size() ? leaves[next++] : error(shape.range);
  std::vector<Operand> members;
  for (size_t i = 0; i < shape.items.size(); ++i)
    members.push_back(i < shape.type->structure->parameterCount() ? shape.items[i]
                                                                  : withLeaves(shape.items[i], leaves, next));
  return structOf(*shape.type->structure, std::move(members), shape.range);
}

Operand Elaborator::kernelArgument(const Type *type, const ast::Parameter &parameter, const std::string &name) {
  if (!type->isStruct()) {
    bool mayBeNone = type->isOptionalView();
    const Type *own = mayBeNone ? type->items[0] : type;
    auto number = static_cast<int64_t>(function.parameters.size());
    function.parameters.push_back(
        {name, own, parameter.isMut && own->kind == TypeKind::View, parameter.range, mayBeNone});
    return runTime(emit(Kind::Parameter, own, parameter.name.range, {}, {number}));
  }
  const StructEntity &structure = *type->structure;
  std::vector<Operand> members;
  for (const Value &value : type->parameters)
    members.push_back(constant(value, parameter.name.range));
  for (size_t i = members.size(); i < type->items.size(); ++i)
    members.push_back(kernelArgument(type->items[i], parameter, name + "." + structure.member(i).text));
  return structOf(structure, std::move(members), parameter.name.range);
}

std::optional<Operand> Elaborator::inferred(const FunctionEntity &function, const std::string &name,
                                            const std::vector<Operand> &arguments) {
  const auto &parameters = function.syntax->parameters;
  for (size_t i = 0; i < arguments.size(); ++i) {
    auto *index = parameters[i].type ? parameters[i].type->as<ast::IndexExpr>() : nullptr;
    if (!index || !arguments[i].type || !arguments[i].isStruct() ||
        Checker::structNamedBy(*index, *function.module) != arguments[i].type->structure)
      continue;
    const StructEntity &structure = *arguments[i].type->structure;
    for (size_t a = 0; a < index->arguments.size(); ++a) {
      const ast::Argument &argument = index->arguments[a];
      auto *wanted = argument.value->as<ast::NameExpr>();
      size_t member = argument.name ? structure.find(argument.name.text) : a;
      if (wanted && wanted->name == name && member < structure.parameterCount())
        return arguments[i].items[member];
    }
  }
  return std::nullopt;
}

} // namespace kpkg::compiler
