// Evaluates calls of functions and methods, and constructs structs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/comptime/EvalFrame.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

/// Binds the arguments of `callee` to its parameters from number `first` on, and evaluates them.
template <typename Parameter>
bool Evaluator::bind(const std::string &callee, const std::vector<Parameter> &parameters, size_t first,
                     const std::vector<ast::Argument> &given, const Environment &environment, Frame &names,
                     SourceRange range, std::vector<Value> &values) {
  size_t count = parameters.size() - first;
  if (given.size() > count) {
    diags.report(diag::TooManyArguments, given[count].range, callee, static_cast<int64_t>(count));
    return false;
  }
  for (const ast::Argument &argument : given) {
    bool known = !argument.name;
    for (size_t i = first; i < parameters.size(); ++i)
      known |= parameters[i].name.text == argument.name.text;
    if (!known) {
      diags.report(diag::UnknownArgument, argument.range, callee, argument.name.text);
      return false;
    }
  }
  for (size_t i = first; i < parameters.size(); ++i) {
    const ast::Expr *expr = nullptr;
    if (i - first < given.size() && !given[i - first].name)
      expr = given[i - first].value.get();
    for (const ast::Argument &argument : given)
      if (argument.name && argument.name.text == parameters[i].name.text)
        expr = argument.value.get();
    std::optional<Value> value;
    if (expr)
      value = evaluate(*expr, environment);
    else if (parameters[i].defaultValue)
      value = evaluate(*parameters[i].defaultValue, names);
    else
      diags.report(diag::MissingArgument, range, callee, parameters[i].name.text);
    if (!value)
      return false;
    names.declare(parameters[i].name.text, *value);
    values.push_back(std::move(*value));
  }
  return true;
}

std::optional<Value> Evaluator::callBound(const FunctionEntity &function,
                                          const std::vector<ast::Argument> &comptimeArguments,
                                          const std::vector<ast::Argument> &arguments, const Environment &environment,
                                          SourceRange range, const Value *self) {
  const ast::FunctionStmt &syntax = *function.syntax;
  Frame names(*function.module); // earlier parameters, to which defaults may refer
  std::vector<Value> comptimeValues, values;
  if (self)
    values.push_back(*self);
  if (!bind(function.name(), syntax.comptimeParameters, 0, comptimeArguments, environment, names, range,
            comptimeValues) ||
      !bind(function.name(), syntax.parameters, values.size(), arguments, environment, names, range, values))
    return std::nullopt;
  return call(function, std::move(comptimeValues), std::move(values), range);
}

std::optional<Value> Evaluator::call(const FunctionEntity &function, std::vector<Value> comptimeArguments,
                                     std::vector<Value> arguments, SourceRange range) {
  if (function.role != FunctionRole::Inline)
    return fail(range, "`" + function.name() + "` cannot be called while compiling");
  if (depth >= limits.depth) {
    diags.report(diag::ComptimeLimit, range, fmt::format("{} calls within calls", limits.depth));
    return std::nullopt;
  }
  Frame frame(*function.module);
  const ast::FunctionStmt &syntax = *function.syntax;
  if (function.owner) {
    frame.declare("Self", Value(function.owner));
    const StructValue &self = arguments[0].asStruct();
    for (size_t i = 0; i < function.owner->parameterCount(); ++i)
      if (self.members[i])
        frame.declare(function.owner->member(i).text, *self.members[i]);
  }
  for (size_t i = 0; i < comptimeArguments.size(); ++i)
    frame.declare(syntax.comptimeParameters[i].name.text, std::move(comptimeArguments[i]));
  for (size_t i = 0; i < arguments.size(); ++i)
    frame.declare(syntax.parameters[i].name.text, std::move(arguments[i]));
  ++depth;
  Flow flow = run(syntax.body, frame);
  --depth;
  if (flow == Flow::Failed)
    return std::nullopt;
  return frame.result;
}

/// Returns whether a value suits an annotation, and converts numbers to floats. Types that need the checker suit.
static bool suits(const ast::Expr *type, Value &value, const Environment &names) {
  auto *name = type ? type->as<ast::NameExpr>() : nullptr;
  if (!name)
    return true;
  if (auto dtype = dtypeOfTypeName(name->name)) {
    if (isFloat(*dtype) && value.isInt())
      value = Value(value.asNumber());
    return isFloat(*dtype) ? value.isFloat() : *dtype == DType::Bool ? value.isBool() : value.isInt();
  }
  if (name->name == "String")
    return value.isString();
  if (name->name == "DType")
    return value.isDType();
  if (name->name == "Function")
    return value.isFunction();
  if (name->name == "Tensor" || name->name == "Tile" || name->name == "Scalar")
    return false;
  Meaning meaning = names.lookup(name->name, name->range);
  bool isStruct = meaning.kind == Meaning::Known && meaning.value.isStructName();
  return !isStruct || (value.isStruct() && value.asStruct().structure == meaning.value.asStructName());
}

std::optional<Value> Evaluator::construct(const StructEntity &entity,
                                          const std::vector<ast::Argument> &comptimeArguments,
                                          const std::vector<ast::Argument> &arguments, const Environment &environment,
                                          SourceRange range) {
  Frame names(*entity.module);
  std::vector<Value> members, fields;
  if (!bind(entity.name(), entity.syntax->comptimeParameters, 0, comptimeArguments, environment, names, range, members))
    return std::nullopt;
  Frame ofFields(names);
  if (!bind(entity.name(), entity.syntax->fields, 0, arguments, environment, ofFields, range, fields))
    return std::nullopt;
  members.insert(members.end(), fields.begin(), fields.end());
  StructValue value;
  value.structure = &entity;
  for (size_t i = 0; i < members.size(); ++i) {
    size_t field = i - entity.parameterCount();
    const ast::Expr *type = i < entity.parameterCount() ? entity.syntax->comptimeParameters[i].type.get()
                                                        : entity.syntax->fields[field].type.get();
    if (!suits(type, members[i], names)) {
      diags.report(diag::TypeMismatch, range, "`" + entity.member(i).text + "` of `" + entity.name() + "`",
                   kindName(members[i]), type->as<ast::NameExpr>()->name); // suits() knows names only
      return std::nullopt;
    }
    value.members.emplace_back(std::move(members[i]));
  }
  return Value::structure(std::move(value));
}

std::optional<Value> Evaluator::withField(const Value &base, size_t number, Value value, SourceRange range) {
  StructValue changed = base.asStruct();
  const StructEntity &entity = *changed.structure;
  if (number < entity.parameterCount())
    return fail(range, "`" + entity.member(number).text + "` is a comptime parameter of `" + entity.name() + "`");
  const ast::Expr *type = entity.syntax->fields[number - entity.parameterCount()].type.get();
  if (!suits(type, value, *entity.module)) {
    diags.report(diag::TypeMismatch, range, "`" + entity.member(number).text + "` of `" + entity.name() + "`",
                 kindName(value), type->as<ast::NameExpr>()->name);
    return std::nullopt;
  }
  changed.members[number] = std::move(value);
  return Value::structure(std::move(changed));
}

std::optional<Value> Evaluator::callee(const ast::CallExpr &call, const Environment &environment) {
  static const std::vector<ast::Argument> none;
  const ast::Expr *base = call.callee.get();
  const std::vector<ast::Argument> *comptimeArguments = &none;
  if (auto *index = base->as<ast::IndexExpr>()) {
    comptimeArguments = &index->arguments;
    base = index->base.get();
  }
  if (auto *name = base->as<ast::NameExpr>()) {
    bool isBuiltin =
        isComptimeBuiltin(name->name) && environment.lookup(name->name, name->range).kind == Meaning::Unknown;
    if (isBuiltin) {
      std::vector<Value> values;
      for (const ast::Argument &argument : call.arguments) {
        auto value = evaluate(*argument.value, environment);
        if (!value)
          return std::nullopt;
        values.push_back(std::move(*value));
      }
      Folded result = foldCall(name->name, values);
      return result ? result.value : fail(call.range, result.error);
    }
  }
  if (auto *method = base->as<ast::AttributeExpr>()) {
    auto *owner = method->base->as<ast::NameExpr>();
    if (owner && owner->name == targetName && environment.lookup(owner->name, owner->range).kind == Meaning::Known)
      return targetQuery(*method, call, environment);
    Meaning meaning =
        owner ? environment.lookupMember(owner->name, method->attribute.text, method->attribute.range) : Meaning();
    if (meaning.kind == Meaning::Unknown) {
      auto self = evaluate(*method->base, environment);
      if (!self)
        return std::nullopt;
      const FunctionEntity *found =
          self->isStruct() ? self->asStruct().structure->method(method->attribute.text) : nullptr;
      if (found)
        return callBound(*found, *comptimeArguments, call.arguments, environment, call.range, &*self);
      Folded member = foldAttribute(*self, method->attribute.text);
      return member ? callValue(*member.value, *comptimeArguments, call, environment)
                    : fail(method->attribute.range, member.error);
    }
  }
  auto function = evaluate(*base, environment);
  return function ? callValue(*function, *comptimeArguments, call, environment) : std::nullopt;
}

std::optional<Value> Evaluator::callValue(const Value &function, const std::vector<ast::Argument> &comptimeArguments,
                                          const ast::CallExpr &call, const Environment &environment) {
  if (function.isStructName())
    return construct(*function.asStructName(), comptimeArguments, call.arguments, environment, call.range);
  if (function.isFunction())
    return callBound(*function.asFunction(), comptimeArguments, call.arguments, environment, call.range);
  return fail(call.callee->range, kindName(function) + " cannot be called");
}

} // namespace kpkg::compiler
