// Expands `@tune` decorators to a kernel's alternatives: instances with equal results from which the runtime chooses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Elaborator.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

/// Names of `@tune` that are not parameters: the condition on alternatives, the general alternatives, and those with
/// vectorised variants.
static constexpr std::string_view conditionName = "where", generalName = "general", vectorsName = "vectors";

static bool isCondition(const ast::Argument &argument) {
  return argument.name && (argument.name.text == conditionName || argument.name.text == generalName ||
                           argument.name.text == vectorsName);
}

static std::vector<const ast::Decorator *> tuneDecorators(const FunctionEntity &function) {
  std::vector<const ast::Decorator *> found;
  for (const ast::Decorator &decorator : function.syntax->decorators)
    if (decorator.name == "tune")
      found.push_back(&decorator);
  return found;
}

static bool fits(const std::string &kind, const Value &value) { return kind == "int" ? value.isInt() : value.isBool(); }

bool Checker::markTuned(const FunctionEntity &function, std::vector<KernelParameter> &parameters) {
  for (const ast::Decorator *decorator : tuneDecorators(function))
    for (const ast::Argument &argument : decorator->arguments) {
      if (isCondition(argument))
        continue;
      auto found = std::find_if(parameters.begin(), parameters.end(), [&](const KernelParameter &parameter) {
        return argument.name && parameter.name == argument.name.text;
      });
      if (found == parameters.end()) {
        diags.report(diag::UnknownArgument, argument.range, function.name(),
                     argument.name ? argument.name.text : "(by position)");
        return false;
      }
      if (found->kind != "int" && found->kind != "bool") {
        diags.report(diag::TypeMismatch, argument.range, "tuned parameter `" + found->name + "`", found->kind,
                     "int or bool");
        return false;
      }
      for (const ast::Decorator &other : function.syntax->decorators)
        if (other.name == "specialize")
          for (const ast::Argument &listed : other.arguments)
            if (listed.name && listed.name.text == found->name) {
              diags.report(diag::TunedAndSpecialized, argument.range, found->name)
                  .note(diag::PreviousHere, listed.range, found->name);
              return false;
            }
      found->isTuned = true;
    }
  return true;
}

std::optional<bool> Checker::condition(const ast::Argument &argument, const Environment &scope) {
  auto holds = evaluator.evaluate(*argument.value, scope);
  if (!holds)
    return std::nullopt;
  if (!holds->isBool()) {
    diags.report(diag::ConditionNotBool, argument.value->range, kindName(*holds));
    return std::nullopt;
  }
  return holds->asBool();
}

bool Checker::evaluateVariants(const FunctionEntity &function, const Environment &values, KernelInstance &instance) {
  for (const ast::Decorator *decorator : tuneDecorators(function))
    for (const ast::Argument &argument : decorator->arguments) {
      if (!argument.name || (argument.name.text != generalName && argument.name.text != vectorsName))
        continue;
      std::optional<bool> &answer = argument.name.text == generalName ? instance.isGeneral : instance.hasVectors;
      std::optional<bool> holds = condition(argument, values);
      if (!holds)
        return false;
      answer = answer.value_or(false) || *holds;
    }
  return true;
}

/// Appends the alternatives of `values` for the arguments of `decorator` from number `next` on.
bool Checker::addAlternatives(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                              const ast::Decorator &decorator, size_t next, const std::vector<Value> &values,
                              std::vector<std::vector<Value>> &alternatives) {
  while (next < decorator.arguments.size() && isCondition(decorator.arguments[next]))
    ++next;
  BodyScope scope = instanceScope(function, values);
  if (next == decorator.arguments.size()) {
    for (size_t i = 0; i < parameters.size(); ++i)
      if (values[i].isNone()) {
        diags.report(diag::MissingSpecialize, decorator.range, function.name(), parameters[i].name);
        return false;
      }
    for (const ast::Argument &argument : decorator.arguments) {
      if (argument.name.text != conditionName)
        continue;
      std::optional<bool> holds = condition(argument, scope);
      if (!holds)
        return false;
      if (!*holds)
        return true;
    }
    if (std::find(alternatives.begin(), alternatives.end(), values) == alternatives.end())
      alternatives.push_back(values);
    return true;
  }
  const ast::Argument &argument = decorator.arguments[next];
  size_t at = 0;
  while (parameters[at].name != argument.name.text)
    ++at;
  auto value = evaluator.evaluate(*argument.value, scope);
  if (!value)
    return false;
  std::vector<Value> items = {*value};
  if (value->isSequence())
    items = value->asSequence().items;
  if (items.empty()) {
    diags.report(diag::TypeMismatch, argument.value->range, "`" + parameters[at].name + "`", "an empty list",
                 "at least one value");
    return false;
  }
  for (const Value &item : items) {
    if (!fits(parameters[at].kind, item)) {
      diags.report(diag::TypeMismatch, argument.value->range, "a value of `" + parameters[at].name + "`",
                   kindName(item), parameters[at].kind);
      return false;
    }
    std::vector<Value> longer = values;
    longer[at] = item;
    if (!addAlternatives(function, parameters, decorator, next + 1, longer, alternatives))
      return false;
    if (alternatives.size() > maxInstances) {
      diags.report(diag::ComptimeLimit, decorator.range, fmt::format("{} instances", maxInstances));
      return false;
    }
  }
  return true;
}

bool Checker::expandAlternatives(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                                 std::vector<std::vector<Value>> &instances) {
  std::vector<const ast::Decorator *> decorators = tuneDecorators(function);
  if (decorators.empty())
    return true;
  std::vector<std::vector<Value>> expanded;
  for (const std::vector<Value> &values : instances) {
    std::vector<std::vector<Value>> alternatives;
    for (const ast::Decorator *decorator : decorators)
      if (!addAlternatives(function, parameters, *decorator, 0, values, alternatives))
        return false;
    if (alternatives.empty()) {
      std::string text = function.name();
      const char *separator = "[";
      for (size_t i = 0; i < parameters.size(); ++i)
        if (!parameters[i].isTuned) {
          text += separator + parameters[i].name + "=" + values[i].str();
          separator = ", ";
        }
      if (*separator == ',')
        text += "]";
      diags.report(diag::NoAlternative, decorators.front()->range, text);
      return false;
    }
    std::move(alternatives.begin(), alternatives.end(), std::back_inserter(expanded));
    if (expanded.size() > maxInstances) {
      diags.report(diag::ComptimeLimit, decorators.front()->range, fmt::format("{} instances", maxInstances));
      return false;
    }
  }
  instances = std::move(expanded);
  return true;
}

} // namespace kpkg::compiler
