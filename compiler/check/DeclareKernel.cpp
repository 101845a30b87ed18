// Declares kernels and their instances, from the decorators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Elaborator.h"
#include "compiler/check/Frame.h"
#include "compiler/comptime/Fold.h"

#include <cctype>

namespace kpkg::compiler {

BodyScope Checker::instanceScope(const FunctionEntity &function, const std::vector<Value> &values) {
  BodyScope scope(*function.module);
  const auto &own = function.syntax->comptimeParameters;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].isNone())
      continue;
    Binding binding;
    binding.operand.type = types.none;
    binding.operand.constant = values[i];
    scope.declare(i < own.size() ? own[i].name.text : structParameters(function)[i - own.size()].name,
                  std::move(binding));
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

bool Checker::isOfKind(const std::string &kind, const Value &value) {
  if (kind == "function")
    return value.isFunction() && isInlined(*value.asFunction());
  return kind == "dtype"  ? value.isDType()
         : kind == "int"  ? value.isInt()
         : kind == "bool" ? value.isBool()
                          : value.isString();
}

/// Returns a comptime parameter of a kernel, which may be that of a struct.
const ast::ComptimeParameter &Checker::kernelParameter(const FunctionEntity &function, size_t number) {
  const auto &own = function.syntax->comptimeParameters;
  return number < own.size() ? own[number] : structParameters(function)[number - own.size()].syntax();
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
  if (decorators.empty())
    for (size_t i = 0; i < parameters.size(); ++i)
      if (!kernelParameter(function, i).defaultValue && !parameters[i].isTuned) {
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
      if (!lists[i] && !parameters[i].isTuned && !kernelParameter(function, i).defaultValue) {
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
  const ast::Expr &expr = list ? *list->value : *kernelParameter(function, number).defaultValue;
  bool isOfStruct = !list && number >= function.syntax->comptimeParameters.size();
  BodyScope scope = isOfStruct ? defaultScope(function, number, before) : instanceScope(function, before);
  auto value = evaluator.evaluate(expr, scope);
  if (!value)
    return std::nullopt;
  std::vector<Value> items = {*value};
  if (list && value->isSequence())
    items = value->asSequence().items;
  for (const Value &item : items)
    if (!isOfKind(parameter.kind, item)) {
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

std::optional<std::string> Checker::parameterKind(const ast::ComptimeParameter &parameter, const Environment &module,
                                                  std::string_view of) {
  if (!parameter.type) {
    diags.report(diag::NeedsType, parameter.range, parameter.name.text);
    return std::nullopt;
  }
  TypeSpec spec = resolveType(*parameter.type, module);
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
  diags.report(diag::NotSupportedYet, parameter.range, fmt::format("a {} parameter that is {}", of, spec.str()),
               fmt::format("{} parameters are DType, Int, Bool, String or Function", of));
  return std::nullopt;
}

bool Checker::declareKernelParameters(const FunctionEntity &function, KernelRecord &record) {
  bool isWrong = false;
  for (const ast::ComptimeParameter &parameter : function.syntax->comptimeParameters) {
    auto kind = parameterKind(parameter, *function.module, "kernel");
    isWrong |= !kind;
    record.parameters.push_back({parameter.name.text, kind.value_or("")});
  }
  for (const StructParameter &parameter : structParameters(function)) {
    auto kind = parameterKind(parameter.syntax(), *parameter.structure->module, "struct");
    isWrong |= !kind;
    record.parameters.push_back({parameter.name, kind.value_or("")});
  }
  return !isWrong;
}

namespace {
/// The element type of an annotation such as `Tensor[T, 2]`.
struct ElementType {
  enum Form : uint8_t { Fixed, Parameter, Computed };
  Form form = Fixed;
  std::string parameter = {};
};
} // namespace

static ElementType elementType(const ast::Expr &annotation, const std::vector<ast::ComptimeParameter> &scope) {
  auto *index = annotation.as<ast::IndexExpr>();
  if (!index || index->arguments.empty())
    return {};
  const ast::Expr &first = *index->arguments[0].value;
  auto *base = index->base->as<ast::NameExpr>();
  if (base && base->name == "Optional")
    return elementType(first, scope);
  auto *name = first.as<ast::NameExpr>();
  if (!name)
    return {ElementType::Computed};
  for (const ast::ComptimeParameter &parameter : scope)
    if (parameter.name.text == name->name)
      return {ElementType::Parameter, name->name};
  return {};
}

/// Returns the dtype of an argument with these element types, by instance: the only one, or the parameter that gives
/// it, or an empty text.
static std::string argumentDType(const std::vector<DType> &elements, const ElementType &type, const std::string &prefix,
                                 const std::vector<KernelParameter> &parameters,
                                 const std::vector<std::vector<Value>> &instances) {
  bool allSame = std::equal(elements.begin() + 1, elements.end(), elements.begin());
  bool isParameter = type.form == ElementType::Parameter;
  std::string found;
  for (size_t p = 0; p < parameters.size() && (!allSame || isParameter); ++p) {
    bool isThis = parameters[p].kind == "dtype";
    for (size_t n = 0; n < instances.size() && isThis; ++n)
      isThis = instances[n][p].asDType() == elements[n];
    // Another parameter may have the same values. A struct's may be bound to a parameter of another name.
    if (isThis && (found.empty() || (isParameter && parameters[p].name == prefix + type.parameter)))
      found = parameters[p].name;
  }
  return found.empty() && allSame ? std::string(valueNameOf(elements[0])) : found;
}

bool Checker::declareKernelArgument(const FunctionEntity &function, const ast::Parameter &parameter,
                                    const std::vector<std::vector<Value>> &instances, KernelRecord &record) {
  if (parameter.defaultValue) {
    diags.report(diag::NotSupportedYet, parameter.range, "a default of a kernel's argument",
                 "give the argument in `launch`");
    return false;
  }
  std::vector<KernelArgument> arguments;
  std::vector<std::vector<DType>> elements;
  std::vector<FlatArgument> flat;
  for (const std::vector<Value> &values : instances) {
    const Type *type = kernelArgumentType(parameter, instanceScope(function, values));
    if (!type)
      return false;
    flat.clear();
    flatten({parameter.name.text, type, parameter.type.get(), &function.syntax->comptimeParameters, {}}, flat);
    arguments.resize(flat.size());
    elements.resize(flat.size());
    for (size_t i = 0; i < flat.size(); ++i) {
      bool isOptional = flat[i].type->isOptionalView();
      const Type *of = isOptional ? flat[i].type->items[0] : flat[i].type;
      arguments[i].name = flat[i].name;
      arguments[i].isView = of->kind == TypeKind::View;
      arguments[i].rank = arguments[i].isView ? of->rank : 0;
      arguments[i].isMut = arguments[i].isView && parameter.isMut;
      arguments[i].isOptional = arguments[i].mayBeNone = isOptional;
      elements[i].push_back(of->element);
    }
  }
  bool anyView = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    anyView |= arguments[i].isView;
    ElementType type = elementType(*flat[i].annotation, *flat[i].scope);
    arguments[i].isComputedDType = type.form == ElementType::Computed;
    arguments[i].dtype = argumentDType(elements[i], type, flat[i].prefix, record.parameters, instances);
    record.arguments.push_back(std::move(arguments[i]));
  }
  if (parameter.isMut && !anyView)
    diags.report(diag::MutScalar, parameter.range, parameter.name.text);
  return !parameter.isMut || anyView;
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
    BodyScope scope = instanceScope(function, values);
    isWrong = isWrong || !evaluateLevel(function, scope, instance) || !evaluateSchedule(function, scope, instance) ||
              !evaluateVariants(function, scope, instance);
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
