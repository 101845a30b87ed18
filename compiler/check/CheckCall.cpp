// Checks calls: built-in functions and methods, inline functions, other ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Frame.h"
#include "compiler/check/Members.h"
#include "compiler/check/ThreadNames.h"
#include "compiler/diag/ForeignNames.h"
#include "compiler/diag/NearestName.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace kpkg::compiler {

Operand Elaborator::notSupported(SourceRange range, std::string_view what, std::string_view instead) {
  diags.report(diag::NotSupportedYet, range, what, instead);
  return error(range);
}

Operand Elaborator::onlyIn(BodyKind wanted, const CallSite &site) {
  if (kind != wanted) {
    if (wanted == BodyKind::Kernel)
      diags.report(diag::OnlyInKernels, site.nameRange, site.name);
    else
      diags.report(diag::OnlyInOps, site.nameRange, site.name);
    return error(site.range());
  }
  return none(site.range());
}

bool Elaborator::hasBrackets(const CallSite &site, std::string_view argument) {
  if (!site.comptimeArguments)
    diags.report(diag::MissingArgument, site.range(), site.name, argument);
  return site.comptimeArguments != nullptr;
}

/// Maps functions of later language versions to advice for the current one.
static const std::unordered_map<std::string, std::string> &laterFunctions() {
  static const std::unordered_map<std::string, std::string> table = {
      {"topk", "write `top_k(tile, k)`"},
      {"syncthreads", "write `barrier()`, in a kernel with `@kernel(level=\"threads\")`"},
      {"stack_allocation", "write `shared[T](extents...)`, memory of a block of threads, or `scratch` for tiles"},
      {"output_rows", "write `for m, ... in output_tiles[...](o)`"},
  };
  return table;
}

Operand Elaborator::checkCall(const ast::CallExpr &expr) {
  CallSite site;
  site.call = &expr;
  site.arguments = &expr.arguments;
  const ast::Expr *callee = expr.callee.get();
  if (auto *index = callee->as<ast::IndexExpr>()) {
    site.comptimeArguments = &index->arguments;
    callee = index->base.get();
  }
  auto callValue = [&](const Operand &value) {
    if (value.isError())
      return error(expr.range);
    if (value.constant && value.constant->isFunction())
      return callFunction(*value.constant->asFunction(), site);
    if (value.constant && value.constant->isStructName())
      return construct(*value.constant->asStructName(), site);
    diags.report(diag::NotCallable, callee->range, describe(value));
    return error(expr.range);
  };
  if (auto *attribute = callee->as<ast::AttributeExpr>()) {
    site.name = attribute->attribute.text;
    site.nameRange = attribute->attribute.range;
    if (auto *base = attribute->base->as<ast::NameExpr>(); base && !scope->find(base->name)) {
      Meaning meaning = scope->lookupMember(base->name, site.name, site.nameRange);
      if (meaning.kind == Meaning::Known)
        return callValue(constant(meaning.value, callee->range));
      if (meaning.kind == Meaning::Reported)
        return error(expr.range);
    }
    site.base = check(*attribute->base);
    return site.base.isError() ? error(expr.range) : checkMethod(site);
  }
  auto *name = callee->as<ast::NameExpr>();
  if (!name)
    return callValue(check(*callee));
  site.name = name->name;
  site.nameRange = name->range;
  if (scope->lookup(name->name, name->range).kind != Meaning::Unknown)
    return callValue(checkName(*name));
  static const std::unordered_map<std::string, Handler> ofHost = {
#define HOST(name, handler) {#name, &Elaborator::handler},
#include "compiler/check/Builtins.def"
  };
  if (auto found = ofHost.find(name->name); kind == BodyKind::Op && found != ofHost.end())
    return (this->*found->second)(site);
  static const std::unordered_map<std::string, Handler> builtins = {
#define BUILTIN(name, handler) {#name, &Elaborator::handler},
#define SAME(name, handler) {#name, &Elaborator::handler},
#include "compiler/check/Builtins.def"
  };
  if (auto found = builtins.find(name->name); found != builtins.end())
    return isOfThreads() && isOnlyForTiles(name->name) ? belongsToTiles(name->range, name->name)
                                                       : (this->*found->second)(site);
  if (auto later = laterFunctions().find(name->name); later != laterFunctions().end())
    return notSupported(name->range, "`" + name->name + "`", later->second);
  return callValue(checkName(*name));
}

Operand Elaborator::checkMethod(CallSite &site) {
  using Table = std::unordered_map<std::string, Handler>;
  static const std::unordered_map<std::string, Table> methods = [] {
    std::unordered_map<std::string, Table> tables;
#define METHOD(base, name, handler) tables[#base][#name] = &Elaborator::handler;
#define SAMEMETHOD(base, name, handler) tables[#base][#name] = &Elaborator::handler;
#include "compiler/check/Builtins.def"
    tables["Scratch"].insert(tables["View"].begin(), tables["View"].end());
    return tables;
  }();
  if (site.base.type->kind == TypeKind::None) {
    diags.report(diag::TypeMismatch, site.base.range, "this", "None", "Tensor");
    return error(site.range());
  }
  if (site.base.isStruct()) {
    std::optional<Operand> called = callMember(site);
    if (!called)
      reportUnknownMember(site.base, site.name, site.nameRange);
    return called ? *called : error(site.range());
  }
  auto found = methods.find(std::string(memberBaseOf(*site.base.type)));
  if (found != methods.end())
    if (auto method = found->second.find(site.name); method != found->second.end())
      return isOfThreads() && isOnlyForTiles(site.name) ? belongsToTiles(site.nameRange, site.name)
                                                        : (this->*method->second)(site);
  if (site.base.type->kind == TypeKind::View && site.name.rfind("atomic_", 0) == 0)
    return notSupported(site.nameRange, "`." + site.name + "`",
                        "there are `.atomic_add`, `.atomic_max`, `.atomic_min`, `.atomic_exchange` and "
                        "`.atomic_compare_exchange`");
  bool isHostTensor = site.base.type->isTensor() || site.base.type->isOptionalTensor();
  std::string_view advice = site.base.type->isTile() ? adviceForForeignTileMethod(site.name)
                            : isHostTensor           ? adviceForForeignTensorMethod(site.name)
                                                     : "";
  if (!advice.empty()) {
    diags.report(diag::NotInLanguage, site.nameRange, "." + site.name, advice);
    return error(site.range());
  }
  std::vector<std::string> names;
  if (found != methods.end())
    for (const auto &[name, method] : found->second)
      names.push_back(name);
  std::sort(names.begin(), names.end());
  reportUnknownAttribute(diags, describe(site.base), site.name, site.nameRange, names);
  return error(site.range());
}

template <typename Parameter> static std::vector<std::string_view> namesOf(const std::vector<Parameter> &parameters) {
  std::vector<std::string_view> names;
  for (const Parameter &parameter : parameters)
    names.push_back(parameter.name.text);
  return names;
}

std::optional<std::vector<const ast::Expr *>> Elaborator::bindByName(const ast::Identifier &callee,
                                                                     const std::vector<ast::Argument> &given,
                                                                     const std::vector<std::string_view> &names,
                                                                     const ast::Argument *except) {
  std::vector<const ast::Expr *> bound(names.size(), nullptr);
  size_t position = 0;
  for (const ast::Argument &argument : given) {
    if (&argument == except)
      continue;
    size_t at =
        argument.name ? size_t(std::find(names.begin(), names.end(), argument.name.text) - names.begin()) : position++;
    if (at >= names.size()) {
      auto report = argument.name ? diags.report(diag::UnknownArgument, argument.range, callee.text, argument.name.text)
                                  : diags.report(diag::TooManyArguments, argument.range, callee.text,
                                                 static_cast<int64_t>(names.size()));
      report.note(diag::DeclaredHere, callee.range, callee.text);
      return std::nullopt;
    }
    if (bound[at]) {
      diags.report(diag::RepeatedArgument, argument.range, names[at]);
      return std::nullopt;
    }
    bound[at] = argument.value.get();
  }
  return bound;
}

static ast::Identifier calleeOf(const FunctionEntity &entity) { return {entity.name(), entity.syntax->signatureRange}; }

bool Elaborator::bindComptime(const FunctionEntity &entity, const std::vector<ast::Argument> *given,
                              const std::vector<Operand> &operands, std::vector<Value> &values, SourceRange range) {
  static const std::vector<ast::Argument> nothing;
  const auto &arguments = given ? *given : nothing;
  const auto &parameters = entity.syntax->comptimeParameters;
  auto bound = bindByName(calleeOf(entity), arguments, namesOf(parameters));
  if (!bound)
    return false;
  BodyScope earlier(*entity.module);
  for (size_t i = 0; i < parameters.size(); ++i) {
    std::optional<Value> value;
    std::optional<Operand> ofType;
    if ((*bound)[i])
      value = comptime(*(*bound)[i]);
    else if ((ofType = inferred(entity, parameters[i].name.text, operands)) && ofType->constant)
      value = ofType->constant;
    else if (ofType)
      diags.report(diag::NotComptime, ofType->range, parameters[i].name.text);
    else if (parameters[i].defaultValue)
      value = checker.evaluator.evaluate(*parameters[i].defaultValue, earlier);
    else
      diags.report(diag::MissingArgument, range, entity.name(), parameters[i].name.text);
    if (!value)
      return false;
    Binding binding;
    binding.operand = constant(*value, parameters[i].range);
    earlier.declare(parameters[i].name.text, binding);
    values.push_back(std::move(*value));
  }
  return true;
}

bool Elaborator::bindArguments(const FunctionEntity &entity, const std::vector<ast::Argument> &given, size_t first,
                               std::vector<const ast::Expr *> &bound, SourceRange range) {
  const auto &parameters = entity.syntax->parameters;
  std::vector<std::string_view> names = namesOf(parameters);
  names.erase(names.begin(), names.begin() + static_cast<ptrdiff_t>(first));
  auto found = bindByName(calleeOf(entity), given, names);
  if (!found)
    return false;
  bound = std::move(*found);
  bound.insert(bound.begin(), first, nullptr);
  for (size_t i = first; i < parameters.size(); ++i)
    if (!bound[i] && !parameters[i].defaultValue) {
      diags.report(diag::MissingArgument, range, entity.name(), parameters[i].name.text)
          .note(diag::DeclaredHere, entity.syntax->signatureRange, entity.name());
      return false;
    }
  return true;
}

std::optional<Operand> Elaborator::passArgument(const ast::Parameter &parameter, const Operand &operand,
                                                const TypeSpec &spec) {
  auto mismatch = [&]() -> std::optional<Operand> {
    diags
        .report(diag::TypeMismatch, operand.range, "argument `" + parameter.name.text + "`", describe(operand),
                spec.str())
        .note(diag::DeclaredHere, parameter.range, parameter.name.text);
    return std::nullopt;
  };
  switch (spec.kind) {
  case TypeSpec::Wrong:
    return std::nullopt;
  case TypeSpec::Any:
    return operand;
  case TypeSpec::AnyTile:
    return operand.type->isTile() ? std::optional(operand) : mismatch();
  case TypeSpec::AnyScalar:
    return operand.type->isScalar() ? std::optional(operand) : mismatch();
  case TypeSpec::AnyTensor:
    if (kind == BodyKind::Kernel)
      return operand.type->kind == TypeKind::View ? std::optional(operand) : mismatch();
    return operand.type->isTensor() || operand.type->isOptionalTensor() ? std::optional(operand) : mismatch();
  case TypeSpec::Struct:
    return isOfStruct(operand, spec) && (!parameter.isMut || isWritable(operand)) ? std::optional(operand) : mismatch();
  case TypeSpec::Exact:
    break;
  }
  const Type *type = onHost(spec.exact);
  bool isForOptional = kind == BodyKind::Kernel && (type->isOptionalTensor() || type->isOptionalView());
  if (isForOptional && operand.type->kind == TypeKind::View) {
    const Type *of = type->items[0];
    bool fits = of->isTensor() || (of->element == operand.type->element && of->rank == operand.type->rank &&
                                   (!of->isMut || operand.type->isMut));
    return fits ? std::optional(operand) : mismatch();
  }
  if (operand.constant && type->isScalar() && operand.type->isScalar() &&
      fitsConstant(*operand.constant, type->element) && operand.constant->isBool() == (type->element == DType::Bool)) {
    if (isFloat(type->element)) // stays a constant of the declared kind
      return constant(Value(operand.constant->asNumber()), operand.range);
    return operand;
  }
  if (operand.isNone() && type->kind == TypeKind::Optional)
    return operand;
  if (operand.constant && operand.type == type)
    return operand;
  if (type->isOptionalTensor() && operand.type->isTensor())
    return operand;
  if (type->kind == TypeKind::View && operand.type->kind == TypeKind::View)
    return type->element == operand.type->element && type->rank == operand.type->rank &&
                   (!type->isMut || operand.type->isMut)
               ? std::optional(operand)
               : mismatch();
  if (operand.isTuple())
    return operand.type == type ? std::optional(operand) : mismatch();
  if (type->isOptionalView())
    return mismatch();
  Node *node = convert(operand, type, "argument `" + parameter.name.text + "`");
  return node ? std::optional(runTime(node)) : std::nullopt;
}

Operand Elaborator::callFunction(const FunctionEntity &entity, CallSite &site, const Operand *self) {
  if (entity.role == FunctionRole::Kernel) {
    diags.report(diag::KernelNotCallable, site.range(), entity.name());
    return error(site.range());
  }
  if (entity.role == FunctionRole::Op)
    return callOp(entity, site);
  std::vector<Value> comptimeValues;
  std::vector<const ast::Expr *> bound;
  if (!bindArguments(entity, *site.arguments, self ? 1 : 0, bound, site.range()))
    return error(site.range());
  std::vector<Operand> operands;
  bool failed = false;
  for (size_t i = 0; i < bound.size(); ++i) {
    const ast::Parameter &parameter = entity.syntax->parameters[i];
    if (self && i == 0) {
      operands.push_back(*self);
    } else if (bound[i]) {
      operands.push_back(check(*bound[i]));
    } else {
      auto value = checker.evaluator.evaluate(*parameter.defaultValue, *entity.module);
      operands.push_back(value ? constant(*value, parameter.range) : error(parameter.range));
    }
    failed |= operands.back().isError();
  }
  if (!bindComptime(entity, site.comptimeArguments, operands, comptimeValues, site.range()) || failed)
    return error(site.range());
  return inlineCall(entity, comptimeValues, std::move(operands), site.range());
}

/// Limit of calls within calls.
static constexpr unsigned maxDepth = 64;

Operand Elaborator::inlineCall(const FunctionEntity &entity, const std::vector<Value> &comptimeArguments,
                               std::vector<Operand> arguments, SourceRange range) {
  if (depth >= maxDepth) {
    diags.report(diag::RecursiveCall, range, entity.name());
    return error(range);
  }
  const ast::FunctionStmt &syntax = *entity.syntax;
  Frame inner;
  inner.function = &entity;
  inner.caller = frame;
  inner.body = block;
  inner.callSite = range;
  collectAssigned(syntax.body, inner.reassigned);
  BodyScope names = entity.owner ? scopeOf(*entity.owner, arguments[0].items) : BodyScope(*entity.module);
  auto declareParameter = [&](const ast::Identifier &name, Operand operand) {
    Binding binding;
    binding.operand = std::move(operand);
    binding.declared = name.range;
    observe(name.range, binding.operand);
    names.declare(name.text, std::move(binding));
  };
  for (size_t i = 0; i < comptimeArguments.size(); ++i)
    declareParameter(syntax.comptimeParameters[i].name,
                     constant(comptimeArguments[i], syntax.comptimeParameters[i].range));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const ast::Parameter &parameter = syntax.parameters[i];
    std::optional<Operand> passed = arguments[i];
    if (parameter.type && frame) // a kernel and an op get what they declare
      passed = passArgument(parameter, arguments[i], checker.resolveType(*parameter.type, names, parameter.isMut));
    if (!passed)
      return error(range);
    declareParameter(parameter.name, std::move(*passed));
  }
  inner.hasResult = syntax.resultType || returnsValue(syntax.body);
  if (syntax.resultType) {
    inner.resultSpec = checker.resolveType(*syntax.resultType, names);
    if (inner.resultSpec.kind == TypeSpec::Wrong)
      return error(range);
    if (inner.resultSpec.kind == TypeSpec::Exact) {
      inner.hasResult = !inner.resultSpec.exact->isNone();
      inner.resultSpec.exact = onHost(inner.resultSpec.exact);
    }
  }
  inner.returned = newFlag();
  uint32_t errorsBefore = diags.errorCount();
  Frame *callerFrame = std::exchange(frame, &inner);
  BodyScope *callerScope = std::exchange(scope, &names);
  ++depth;
  Flow flow = checkBlock(syntax.body);
  --depth;
  frame = callerFrame;
  scope = callerScope;
  bool arrives = flow == Flow::Normal || flow == Flow::Maybe;
  if (arrives)
    inner.atReturns.push_back(valueRanges.save());
  valueRanges.joinAll(std::move(inner.atReturns)); // what the caller knows is what holds at each of them
  if (!inner.hasResult)
    return none(range);
  if (flow == Flow::Stops && !inner.sawReturn) // every path raises; the value is never used
    return inner.resultSpec.kind == TypeSpec::Exact && inner.resultSpec.exact->isTensor()
               ? result(Kind::NoTensor, types.tensor, range, {})
               : error(range);
  if (arrives) {
    if (diags.errorCount() == errorsBefore)
      diags.report(diag::MissingReturn, syntax.signatureRange, entity.name());
    return error(range);
  }
  if (inner.direct) {
    inner.direct->range = range;
    return *inner.direct;
  }
  if (inner.results.empty() && !inner.structShape)
    return error(range);
  std::vector<Operand> items;
  for (hir::Local *local : inner.results)
    items.push_back(runTime(getLocal(local, range)));
  if (size_t next = 0; inner.structShape)
    return withLeaves(*inner.structShape, items, next);
  return inner.isTuple ? tuple(std::move(items), range) : items[0];
}

Operand Elaborator::callOp(const FunctionEntity &entity, CallSite &site) {
  if (kind != BodyKind::Op)
    return onlyIn(BodyKind::Op, site);
  if (site.comptimeArguments) {
    diags.report(diag::TooManyArguments, site.range(), entity.name(), 0);
    return error(site.range());
  }
  std::vector<const ast::Expr *> bound;
  if (!bindArguments(entity, *site.arguments, 0, bound, site.range()))
    return error(site.range());
  const OpInfo &info = checker.opInfo(entity.index);
  std::vector<Node *> nodes;
  for (size_t i = 0; i < bound.size(); ++i) {
    const ast::Parameter &parameter = entity.syntax->parameters[i];
    Operand operand = error(parameter.range);
    if (bound[i])
      operand = check(*bound[i]);
    else if (auto value = checker.evaluator.evaluate(*parameter.defaultValue, *entity.module))
      operand = constant(*value, parameter.range);
    nodes.push_back(convert(operand, info.argumentTypes[i], "argument `" + parameter.name.text + "`"));
  }
  Operand call =
      result(Kind::CallOp, types.none, site.range(), std::move(nodes), {static_cast<int64_t>(info.resultTypes.size())});
  if (call.isError())
    return call;
  call.node->text = checker.program.ops()[entity.index].name;
  checker.noteOpCall(function.name, entity.index, site.range());
  std::vector<Operand> results;
  for (size_t i = 0; i < info.resultTypes.size(); ++i)
    results.push_back(result(Kind::Result, info.resultTypes[i], site.range(), {call.node}, {static_cast<int64_t>(i)}));
  if (results.empty())
    return none(site.range());
  return results.size() == 1 ? results[0] : tuple(std::move(results), site.range());
}

} // namespace kpkg::compiler
