// Checks `launch`, and proves that every path through an op finds a compiled instance.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Launch.h"

#include <functional>
#include <span>

namespace kpkg::compiler {

namespace {

/// Returns the argument of `at_least(n)`; null for any other expression.
const ast::Expr *atLeastArgument(const ast::Expr &expr) {
  auto *call = expr.as<ast::CallExpr>();
  auto *name = call ? call->callee->as<ast::NameExpr>() : nullptr;
  bool isAtLeast = name && name->name == "at_least" && call->arguments.size() == 1 && !call->arguments[0].name;
  return isAtLeast ? call->arguments[0].value.get() : nullptr;
}

/// The values of one parameter that a launch may request.
struct Wanted {
  bool isAny = false; ///< tuned, or equal in all instances: the launch does not specify it
  bool isAtLeast = false;
  std::vector<Value> values; ///< each must have an instance
};

std::vector<std::string_view> namesOf(std::span<const KernelParameter> list) {
  std::vector<std::string_view> names;
  for (const KernelParameter &one : list)
    names.push_back(one.name);
  return names;
}

bool matches(const Wanted &wanted, const Value &asked, const Value &offered) {
  return wanted.isAny || (wanted.isAtLeast ? offered.isInt() && offered.asInt() >= asked.asInt() : offered == asked);
}

/// Returns the values of a parameter over all instances, without repetition.
std::vector<Value> listedValues(const KernelRecord &kernel, size_t number) {
  std::vector<Value> listed;
  for (const KernelInstance &instance : kernel.instances)
    if (std::find(listed.begin(), listed.end(), instance.parameters[number]) == listed.end())
      listed.push_back(instance.parameters[number]);
  return listed;
}

/// Returns whether the parameters of a launch can have these values at once.
using IsPossible = std::function<bool(const std::vector<Value> &values)>;

/// Returns whether the launch may request this instance.
bool isWanted(const KernelInstance &instance, const std::vector<Wanted> &wanted, const IsPossible &isPossible) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    auto serves = [&](const Value &asked) { return matches(wanted[i], asked, instance.parameters[i]); };
    if (std::none_of(wanted[i].values.begin(), wanted[i].values.end(), serves))
      return false;
  }
  return isPossible(instance.parameters);
}

/// Returns whether an instance accepts the combination `at`, an index in each parameter's values.
bool hasInstance(const KernelRecord &kernel, const std::vector<Wanted> &wanted, const std::vector<size_t> &at) {
  for (const KernelInstance &instance : kernel.instances) {
    bool fits = instance.isGeneral.value_or(true); // others may make assumptions about the arguments
    for (size_t i = 0; i < wanted.size() && fits; ++i)
      fits = matches(wanted[i], wanted[i].values[at[i]], instance.parameters[i]);
    if (fits)
      return true;
  }
  return false;
}

/// Returns the first possible combination of wanted values without an instance: "T=float32, COLS>=4096". Their number
/// is small, so it tries each.
std::optional<std::string> missingCombination(const KernelRecord &kernel, const std::vector<Wanted> &wanted,
                                              const IsPossible &isPossible) {
  std::vector<size_t> at(wanted.size(), 0);
  while (true) {
    std::vector<Value> values;
    for (size_t i = 0; i < at.size(); ++i)
      values.push_back(wanted[i].values[at[i]]);
    if (isPossible(values) && !hasInstance(kernel, wanted, at)) {
      std::string text;
      for (size_t i = 0; i < wanted.size(); ++i)
        if (!wanted[i].isAny)
          text += (text.empty() ? "" : ", ") + kernel.parameters[i].name + (wanted[i].isAtLeast ? ">=" : "=") +
                  wanted[i].values[at[i]].str();
      return text;
    }
    size_t i = 0;
    while (i < at.size() && ++at[i] == wanted[i].values.size())
      at[i++] = 0;
    if (i == at.size())
      return std::nullopt;
  }
}

/// "float32, bfloat16"
std::string listText(const std::vector<Value> &values) {
  std::string text;
  for (const Value &value : values)
    text += (text.empty() ? "" : ", ") + value.str();
  return text;
}

} // namespace

/// Reports the first combination of values that can be requested on this path and has no instance.
void Elaborator::proveInstance(const ast::LaunchStmt &stmt, const FunctionEntity &entity,
                               const LaunchParameters &parameters) {
  if (valueRanges.isUnreachable())
    return;
  const KernelRecord &kernel = checker.program.kernels()[entity.index];
  std::vector<Wanted> wanted(parameters.values.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    wanted[i].isAny = !parameters.isGiven[i];
    wanted[i].isAtLeast = parameters.atLeast[i];
    if (wanted[i].isAny)
      wanted[i].values = {Value()};
    else if (!requestedValues(stmt, entity, parameters, i, wanted[i].values))
      return;
  }
  auto isRunTimeDType = [&](size_t i) {
    return !wanted[i].isAny && !parameters.values[i].constant && kernel.parameters[i].kind == "dtype";
  };
  IsPossible isPossible = [&](const std::vector<Value> &values) {
    for (size_t i = 0; i < values.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (isRunTimeDType(i) && isRunTimeDType(j) &&
            !valueRanges.mayBe(parameters.nodes[i], values[i].asDType(), parameters.nodes[j], values[j].asDType()))
          return false;
    return true;
  };
  checker.noteUse(stmt);
  for (size_t i = 0; i < kernel.instances.size(); ++i)
    if (isWanted(kernel.instances[i], wanted, isPossible))
      checker.noteRequest(entity.index, i);
  if (valueRanges.isPartial()) // a combination that is missing may be one that no call asks for
    return;
  if (auto missing = missingCombination(kernel, wanted, isPossible))
    diags.report(diag::MissingInstance, stmt.kernel->range, entity.name(), *missing)
        .note(diag::DeclaredHere, entity.syntax->signatureRange, entity.name());
}

/// Lists the values of a given parameter that the launch may request on this path. Returns false if there is none, or
/// after reporting that they are unknown.
bool Elaborator::requestedValues(const ast::LaunchStmt &stmt, const FunctionEntity &entity,
                                 const LaunchParameters &parameters, size_t number, std::vector<Value> &values) {
  const Operand &operand = parameters.values[number];
  Node *node = parameters.nodes[number];
  if (operand.constant) {
    values = {*operand.constant};
    return true;
  }
  if (operand.type->kind == TypeKind::DType || operand.type->isOptionalDType())
    return requestedDTypes(stmt, entity, node, number, values);
  if (operand.type->isScalar(DType::Bool)) {
    auto known = valueRanges.truth(node);
    for (bool value : {false, true})
      if (!known || *known == value)
        values.emplace_back(value);
    return true;
  }
  return requestedInts(entity, operand.range, node, number, parameters.atLeast[number], values);
}

/// For a dtype that is not listed, the runtime finds no instance and uses the fallback.
bool Elaborator::requestedDTypes(const ast::LaunchStmt &stmt, const FunctionEntity &entity, Node *node, size_t number,
                                 std::vector<Value> &values) {
  const KernelRecord &kernel = checker.program.kernels()[entity.index];
  const std::vector<Value> listed = listedValues(kernel, number);
  for (const Value &value : listed)
    if (valueRanges.mayBe(node, value.asDType()))
      values.push_back(value);
  if (values.empty())
    checker.noteIdle(stmt, entity.index,
                     "`" + kernel.parameters[number].name + "` is none of " + listText(listed) + " here");
  return !values.empty();
}

bool Elaborator::requestedInts(const FunctionEntity &entity, SourceRange range, Node *node, size_t number, bool atLeast,
                               std::vector<Value> &values) {
  const KernelRecord &kernel = checker.program.kernels()[entity.index];
  const std::string &name = kernel.parameters[number].name;
  if (atLeast) {
    Interval interval = valueRanges.range(node);
    if (interval.high == INT64_MAX && valueRanges.isPartial()) {
      values = listedValues(kernel, number);
      return true;
    }
    if (interval.high == INT64_MAX) {
      int64_t most = 0;
      for (const Value &value : listedValues(kernel, number))
        most = std::max(most, value.asInt());
      diags.report(diag::UnboundedParameter, range, name, entity.name(), most)
          .note(diag::DeclaredHere, entity.syntax->signatureRange, entity.name());
      return false;
    }
    values = {Value(interval.high)};
    return true;
  }
  auto choices = valueRanges.choices(node);
  if (!choices && valueRanges.isPartial()) {
    values = listedValues(kernel, number);
    return true;
  }
  if (!choices) {
    diags.report(diag::UnprovenParameter, range, name, entity.name())
        .note(diag::DeclaredHere, entity.syntax->signatureRange, entity.name());
    return false;
  }
  for (int64_t value : *choices)
    values.emplace_back(value);
  return !values.empty(); // without a value it is like a loop without iterations
}

void Elaborator::checkLaunch(const ast::LaunchStmt &stmt) {
  if (kind != BodyKind::Op) {
    diags.report(diag::OnlyInOps, stmt.range, "launch");
    return;
  }
  Operand callee = check(*stmt.kernel);
  if (callee.isError())
    return;
  if (!callee.constant || !callee.constant->isFunction() ||
      callee.constant->asFunction()->role != FunctionRole::Kernel) {
    diags.report(diag::NotAKernel, stmt.kernel->range, describe(callee));
    return;
  }
  const FunctionEntity &entity = *callee.constant->asFunction();
  const KernelRecord &kernel = checker.program.kernels()[entity.index];
  checker.noteLaunch(entity.index);
  if (kernel.instances.empty())
    return; // its declaration had a reported error

  const ast::Argument *grid = nullptr;
  for (const ast::Argument &argument : stmt.arguments)
    if (argument.name && argument.name.text == "grid")
      grid = &argument;
  LaunchParameters parameters;
  if (!launchStructs(stmt, entity, grid, parameters) || !launchParameters(stmt, entity, parameters) ||
      !haveWantedParameters(entity, parameters))
    return;
  proveInstance(stmt, entity, parameters);
  std::vector<Node *> operands;
  auto launch = std::make_unique<hir::LaunchInfo>();
  launch->kernel = kernel.name;
  if (launchArguments(stmt, entity, grid, parameters, operands, *launch) &&
      launchGrid(stmt, entity, grid ? grid->value.get() : nullptr, operands, *launch))
    emit(Kind::Launch, types.none, stmt.range, std::move(operands))->launch = std::move(launch);
}

bool Elaborator::launchParameters(const ast::LaunchStmt &stmt, const FunctionEntity &entity,
                                  LaunchParameters &parameters) {
  const KernelRecord &kernel = checker.program.kernels()[entity.index];
  const KernelInfo &info = checker.kernelInfo(entity.index);
  auto &[values, isGiven, atLeast, nodes, structs] = parameters;
  const size_t own = entity.syntax->comptimeParameters.size();
  auto given = bindByName({entity.name(), entity.syntax->signatureRange}, stmt.parameters,
                          namesOf({kernel.parameters.begin(), kernel.parameters.begin() + ptrdiff_t(own)}));
  if (!given)
    return false;
  given->resize(kernel.parameters.size());
  bool failed = false;
  for (size_t i = 0; i < given->size(); ++i) {
    const std::string &name = kernel.parameters[i].name;
    const ast::Expr *expr = (*given)[i];
    std::optional<Operand> ofStruct;
    if (i >= own)
      ofStruct = memberOfLaunch(checker.structParameters(entity)[i - own], structs);
    else if (!expr)
      ofStruct = inferred(entity, name, structs);
    isGiven.push_back(expr || ofStruct);
    if (!expr && !ofStruct && kernel.parameters[i].isTuned) {
      checker.noteChoice(entity.index);
      values.emplace_back();
      nodes.push_back(nullptr);
      atLeast.push_back(false);
      continue;
    }
    if (!expr && !ofStruct && !info.onlyValue[i]) {
      diags.report(diag::MissingArgument, stmt.kernel->range, entity.name(), name)
          .note(diag::DeclaredHere, entity.syntax->comptimeParameters[i].range, name);
      return false;
    }
    const ast::Expr *least = expr ? atLeastArgument(*expr) : nullptr;
    Operand value = expr       ? check(least ? *least : *expr)
                    : ofStruct ? *ofStruct
                               : constant(*info.onlyValue[i], stmt.kernel->range);
    atLeast.push_back(least != nullptr);
    const std::string &paramKind = kernel.parameters[i].kind;
    const Type *wanted = paramKind == "dtype"      ? types.dtype
                         : paramKind == "int"      ? types.integer()
                         : paramKind == "bool"     ? types.boolean()
                         : paramKind == "function" ? types.function
                                                   : types.string;
    if (!value.isError() && least && paramKind != "int") {
      diags.report(diag::TypeMismatch, expr->range, "`at_least`", paramKind + " parameter", "an Int parameter");
      failed = true;
    }
    Operand asked = value;
    if (value.constant && value.constant->isFunction() && paramKind == "function") { // plans refer to functions by name
      asked = constant(Value(value.constant->str()), value.range);
      wanted = types.string;
    }
    Node *node = convert(asked, wanted, "parameter `" + name + "`");
    failed |= !node;
    values.push_back(value);
    nodes.push_back(node);
  }
  return !failed;
}

/// Checks the extents of the grid. A persistent kernel has none.
bool Elaborator::launchGrid(const ast::LaunchStmt &stmt, const FunctionEntity &entity, const ast::Expr *grid,
                            std::vector<Node *> &operands, hir::LaunchInfo &launch) {
  if (isPersistent(*entity.syntax)) {
    if (grid)
      diags.report(diag::GridOfPersistent, grid->range, entity.name());
    return !grid;
  }
  if (!grid) {
    diags.report(diag::MissingArgument, stmt.range, entity.name(), "grid");
    return false;
  }
  Operand extents = check(*grid);
  if (extents.isError())
    return false;
  std::vector<Operand> items = {extents};
  if (extents.type->kind == TypeKind::Tuple) {
    items = extents.items;
    if (extents.constant)
      for (const Value &item : extents.constant->asSequence().items)
        items.push_back(constant(item, grid->range));
  }
  if (items.empty() || items.size() > 3) {
    diags.report(diag::WrongCount, grid->range, static_cast<int64_t>(items.size()), 3);
    return false;
  }
  for (const Operand &item : items) {
    operands.push_back(intNode(item, "`grid`"));
    if (!operands.back())
      return false;
  }
  launch.gridRank = static_cast<unsigned>(items.size());
  return true;
}

} // namespace kpkg::compiler
