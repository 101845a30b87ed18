// Declares kernels and their instances, from the decorators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Elaborator.h"
#include "compiler/check/Frame.h"
#include "compiler/comptime/Fold.h"

#include <cctype>

namespace kpkg::compiler {

BodyScope instanceScope(const FunctionEntity &function, const std::vector<Value> &values, TypeTable &types) {
  BodyScope scope(*function.module);
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].isNone())
      continue;
    Binding binding;
    binding.operand.type = types.none;
    binding.operand.constant = values[i];
    scope.declare(function.syntax->comptimeParameters[i].name.text, std::move(binding));
  }
  return scope;
}

/// Returns whether a function is inlined, so that kernels can call it. Roles are not known yet, but decorators are.
static bool isInlined(const FunctionEntity &function) {
  for (const ast::Decorator &decorator : function.syntax->decorators)
    if (decorator.name == "kernel" || decorator.name.starts_with("register."))
      return false;
  return true;
}

static bool kindMatches(const std::string &kind, const Value &value) {
  if (kind == "function")
    return value.isFunction() && isInlined(*value.asFunction());
  return kind == "dtype"  ? value.isDType()
         : kind == "int"  ? value.isInt()
         : kind == "bool" ? value.isBool()
                          : value.isString();
}

/// Reports two functions of one name in a list. Packages know functions by name, so that both would be one instance.
bool Checker::haveOwnNames(const std::vector<Value> &functions, SourceRange range) {
  for (size_t i = 0; i < functions.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (functions[i].str() == functions[j].str() && functions[i] != functions[j]) {
        diags.report(diag::FunctionsOfOneName, range, functions[i].str())
            .note(diag::DeclaredHere, functions[j].asFunction()->syntax->name.range, functions[j].str())
            .note(diag::DeclaredHere, functions[i].asFunction()->syntax->name.range, functions[i].str());
        return false;
      }
  return true;
}

/// Returns the cross products of all `@specialize` lists, without repetition, in source order. The list of a parameter
/// may depend on parameters declared before it.
bool Checker::specialisations(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                              std::vector<std::vector<Value>> &instances) {
  const ast::FunctionStmt &syntax = *function.syntax;
  std::vector<const ast::Decorator *> decorators;
  for (const ast::Decorator &decorator : syntax.decorators)
    if (decorator.name == "specialize")
      decorators.push_back(&decorator);
  if (decorators.empty() && !syntax.comptimeParameters.empty())
    for (size_t i = 0; i < parameters.size(); ++i)
      if (!syntax.comptimeParameters[i].defaultValue && !parameters[i].isTuned) {
        diags.report(diag::MissingSpecialize, syntax.name.range, function.name(), parameters[i].name);
        return false;
      }
  static const ast::Decorator none;
  if (decorators.empty())
    decorators.push_back(&none);
  for (const ast::Decorator *decorator : decorators) {
    std::vector<const ast::Argument *> lists(parameters.size());
    for (const ast::Argument &argument : decorator->arguments) {
      auto found = std::find_if(parameters.begin(), parameters.end(),
                                [&](const KernelParameter &one) { return one.name == argument.name.text; });
      if (found == parameters.end()) {
        diags.report(diag::UnknownArgument, argument.range, function.name(),
                     argument.name ? argument.name.text : "(by position)");
        return false;
      }
      lists[found - parameters.begin()] = &argument;
    }
    std::vector<std::vector<Value>> product = {{}};
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!lists[i] && !parameters[i].isTuned && !syntax.comptimeParameters[i].defaultValue) {
        diags.report(diag::MissingSpecialize, decorator->range, function.name(), parameters[i].name);
        return false;
      }
      std::vector<std::vector<Value>> longer;
      for (const auto &prefix : product) {
        std::optional<std::vector<Value>> items = listedValues(function, parameters[i], i, lists[i], prefix);
        if (!items)
          return false;
        for (Value &value : *items) {
          longer.push_back(prefix);
          longer.back().push_back(std::move(value));
          if (longer.size() + instances.size() > maxInstances) {
            diags.report(diag::ComptimeLimit, decorator->range, fmt::format("{} instances", maxInstances));
            return false;
          }
        }
      }
      product = std::move(longer);
    }
    for (auto &values : product)
      if (std::find(instances.begin(), instances.end(), values) == instances.end())
        instances.push_back(std::move(values));
  }
  return true;
}

/// Returns the values of parameter `number` from `list`, or from its default, for instances whose earlier parameters
/// are `before`.
std::optional<std::vector<Value>> Checker::listedValues(const FunctionEntity &function,
                                                        const KernelParameter &parameter, size_t number,
                                                        const ast::Argument *list, const std::vector<Value> &before) {
  if (!list && parameter.isTuned)
    return std::vector<Value>{Value()}; // expandAlternatives() fills it in
  const ast::Expr &expr = list ? *list->value : *function.syntax->comptimeParameters[number].defaultValue;
  BodyScope scope = instanceScope(function, before, types);
  auto value = evaluator.evaluate(expr, scope);
  if (!value)
    return std::nullopt;
  std::vector<Value> items = {*value};
  if (list && value->isSequence())
    items = value->asSequence().items;
  for (const Value &item : items)
    if (!kindMatches(parameter.kind, item)) {
      diags.report(diag::TypeMismatch, expr.range, list ? "a value of `" + parameter.name + "`" : "the default",
                   kindName(item), parameter.kind);
      return std::nullopt;
    }
  if (parameter.kind == "function" && !haveOwnNames(items, expr.range))
    return std::nullopt;
  if (items.empty()) {
    diags.report(diag::TypeMismatch, list->range, "`" + parameter.name + "`", "an empty list", "at least one value");
    return std::nullopt;
  }
  return items;
}

static std::string symbolPart(const std::string &text) {
  std::string symbol;
  for (char c : text)
    symbol += std::isalnum(static_cast<unsigned char>(c)) ? c : c == '-' ? 'm' : '_';
  return symbol;
}

static std::string symbolOf(std::string symbol, const std::vector<Value> &values) {
  for (size_t i = 0; i < values.size(); ++i)
    symbol += (i ? "_" : "__") + symbolPart(values[i].isString() ? values[i].asString() : values[i].str());
  return symbol;
}

/// Returns the kind of a kernel's comptime parameter. Returns nothing after an error.
std::optional<std::string> Checker::parameterKind(const FunctionEntity &function,
                                                  const ast::ComptimeParameter &parameter) {
  if (!parameter.type) {
    diags.report(diag::NeedsType, parameter.range, parameter.name.text);
    return std::nullopt;
  }
  TypeSpec spec = resolveType(*parameter.type, *function.module);
  if (spec.kind == TypeSpec::Wrong)
    return std::nullopt;
  if (spec.kind == TypeSpec::Exact) {
    if (spec.exact->kind == TypeKind::DType)
      return "dtype";
    if (spec.exact->isScalar(DType::Int))
      return "int";
    if (spec.exact->isScalar(DType::Bool))
      return "bool";
    if (spec.exact->kind == TypeKind::String)
      return "string";
    if (spec.exact->kind == TypeKind::Function)
      return "function";
  }
  diags.report(diag::NotSupportedYet, parameter.range, "a kernel parameter that is " + spec.str(),
               "kernel parameters are DType, Int, Bool, String or Function");
  return std::nullopt;
}

bool Checker::declareKernelParameters(const FunctionEntity &function, KernelRecord &record) {
  bool isWrong = false;
  for (const ast::ComptimeParameter &parameter : function.syntax->comptimeParameters) {
    auto kind = parameterKind(function, parameter);
    isWrong |= !kind;
    record.parameters.push_back({parameter.name.text, kind.value_or("")});
  }
  return !isWrong;
}

/// Returns the dtype of an argument with these element types, by instance: the only one, or the parameter that gives
/// it, or an empty text.
static std::string argumentDType(const std::vector<DType> &elements, const std::vector<KernelParameter> &parameters,
                                 const std::vector<std::vector<Value>> &instances) {
  bool allSame = std::equal(elements.begin() + 1, elements.end(), elements.begin());
  if (!allSame || instances.size() == 1)
    for (size_t p = 0; p < parameters.size(); ++p) {
      bool isThis = parameters[p].kind == "dtype";
      for (size_t n = 0; n < instances.size() && isThis; ++n)
        isThis = instances[n][p].asDType() == elements[n];
      if (isThis)
        return parameters[p].name;
    }
  return allSame ? std::string(valueNameOf(elements[0])) : "";
}

bool Checker::declareKernelArgument(const FunctionEntity &function, const ast::Parameter &parameter,
                                    const std::vector<std::vector<Value>> &instances, KernelRecord &record) {
  KernelArgument argument;
  argument.name = parameter.name.text;
  argument.isMut = parameter.isMut;
  if (parameter.defaultValue) {
    diags.report(diag::NotSupportedYet, parameter.range, "a default of a kernel's argument",
                 "give the argument in `launch`");
    return false;
  }
  std::vector<DType> elements;
  for (const std::vector<Value> &values : instances) {
    BodyScope scope = instanceScope(function, values, types);
    TypeSpec spec = resolveType(*parameter.type, scope, parameter.isMut);
    bool fits = spec.kind == TypeSpec::Exact && (spec.exact->kind == TypeKind::View || spec.exact->isScalar());
    if (!fits) {
      if (spec.kind != TypeSpec::Wrong)
        diags.report(diag::KernelArgumentType, parameter.range, spec.str());
      return false;
    }
    if (parameter.isMut && spec.exact->isScalar()) {
      diags.report(diag::MutScalar, parameter.range, parameter.name.text);
      return false;
    }
    argument.isView = spec.exact->kind == TypeKind::View;
    argument.rank = argument.isView ? spec.exact->rank : 0;
    elements.push_back(spec.exact->element);
  }
  argument.dtype = argumentDType(elements, record.parameters, instances);
  record.arguments.push_back(std::move(argument));
  return true;
}

bool Checker::declareInstances(const FunctionEntity &function, std::vector<std::vector<Value>> instances,
                               KernelRecord &record) {
  std::string prefix = symbolPart(record.name);
  while (!kernelSymbols.insert(prefix).second)
    prefix += "_"; // distinguishes `a.b` from `a_b`
  std::set<std::string> symbols;
  bool isWrong = false;
  for (auto &values : instances) {
    KernelInstance instance;
    instance.symbol = symbolOf(prefix, values);
    while (!symbols.insert(instance.symbol).second)
      instance.symbol += "_";
    BodyScope scope = instanceScope(function, values, types);
    isWrong = isWrong || !evaluateSchedule(function, scope, instance) || !evaluateVariants(function, scope, instance);
    instance.parameters = std::move(values);
    record.instances.push_back(std::move(instance));
  }
  return !isWrong;
}

/// Returns, for each parameter, its value if it is equal in all instances.
static std::vector<std::optional<Value>> onlyValues(const KernelRecord &record) {
  std::vector<std::optional<Value>> only;
  for (size_t p = 0; p < record.parameters.size(); ++p) {
    const Value &first = record.instances[0].parameters[p];
    bool same = true;
    for (const KernelInstance &instance : record.instances)
      same &= instance.parameters[p] == first;
    only.push_back(same ? std::optional(first) : std::nullopt);
  }
  return only;
}

void Checker::declareKernel(FunctionEntity &function) {
  const ast::FunctionStmt &syntax = *function.syntax;
  function.role = FunctionRole::Kernel;
  function.index = program.kernelRecords.size();
  KernelRecord record;
  record.name = kernelNames.at(&function);
  record.ownName = function.name();
  record.path = static_cast<const ModuleScope *>(function.module)->path;
  record.doc = syntax.doc;
  record.range = syntax.name.range;
  record.isPersistent = isPersistent(syntax);
  bool isWrong = false;
  for (const KernelRecord &other : program.kernelRecords)
    if (other.name == record.name) {
      diags.report(diag::Redefined, syntax.name.range, record.name).note(diag::DeclaredHere, other.range, record.name);
      isWrong = true;
    }
  if (syntax.resultType && !syntax.resultType->is<ast::NoneLiteral>()) {
    diags.report(diag::KernelResult, syntax.resultType->range, function.name());
    isWrong = true;
  }
  isWrong |= !declareKernelParameters(function, record);
  std::vector<std::vector<Value>> instances;
  isWrong = isWrong || !markTuned(function, record.parameters) ||
            !specialisations(function, record.parameters, instances) ||
            !expandAlternatives(function, record.parameters, instances);
  for (const ast::Parameter &parameter : syntax.parameters)
    if (!parameter.type) {
      diags.report(diag::NeedsType, parameter.range, parameter.name.text);
      isWrong = true;
    }
  for (size_t i = 0; i < syntax.parameters.size() && !isWrong; ++i)
    isWrong = !declareKernelArgument(function, syntax.parameters[i], instances, record);
  KernelInfo info;
  info.function = &function;
  if (!isWrong) {
    isWrong = !declareInstances(function, std::move(instances), record);
    info.onlyValue = onlyValues(record);
  }
  if (isWrong) {
    record.instances.clear();
    record.parameters.clear();
    record.arguments.clear();
  }
  kernels.push_back(std::move(info));
  kernelBodies.emplace_back(record.instances.size());
  kernelChecked.emplace_back(record.instances.size(), false);
  record.isImported = !static_cast<const ModuleScope *>(function.module)->isRoot;
  program.kernelRecords.push_back(std::move(record));
}

bool isPersistent(const ast::FunctionStmt &kernel) {
  for (const ast::StmtPtr &stmt : kernel.body) {
    auto *loop = stmt->as<ast::ForStmt>();
    auto *call = loop ? loop->iterable->as<ast::CallExpr>() : nullptr;
    auto *index = call ? call->callee->as<ast::IndexExpr>() : nullptr;
    auto *name = index ? index->base->as<ast::NameExpr>() : nullptr;
    if (name && name->name == "output_tiles")
      return true;
  }
  return false;
}

} // namespace kpkg::compiler
