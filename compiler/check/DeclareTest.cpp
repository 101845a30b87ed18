// Declares tests of ops: evaluates the functions of `@register.test` for all values of their parameters.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"

#include <algorithm>
#include <fmt/format.h>

namespace kpkg::compiler {

const std::vector<TestRecord> &testsOf(const Program &program) { return Checker::of(program).tests; }

/// Returns the text of numbers in lists: "[[1,2],[3,4]]"; nothing for other values.
static std::optional<std::string> numbersText(const Value &value) {
  if (value.isBool())
    return value.asBool() ? "1" : "0";
  if (value.isInt())
    return fmt::format("{}", value.asInt());
  if (value.isFloat())
    return fmt::format("{}", value.asNumber());
  if (!value.isSequence())
    return std::nullopt;
  std::string text = "[";
  for (const Value &item : value.asSequence().items) {
    auto number = numbersText(item);
    if (!number)
      return std::nullopt;
    text += (text.size() > 1 ? "," : "") + *number;
  }
  return text + "]";
}

/// Returns the text of a given or drawn tensor, which the prelude's `tensor`, `randn` and the like describe; nothing
/// for other values.
static std::optional<std::string> tensorText(const Value &value) {
  if (!value.isSequence() || value.asSequence().items.size() != 3)
    return std::nullopt;
  const std::vector<Value> &items = value.asSequence().items;
  if (!items[0].isString() || !items[1].isSequence() || !items[2].isDType())
    return std::nullopt;
  std::string text = items[0].asString() + "(";
  std::string type(valueNameOf(items[2].asDType()));
  if (items[0].asString() == "tensor") {
    auto numbers = numbersText(items[1]);
    return numbers ? std::optional(text + *numbers + "," + type + ")") : std::nullopt;
  }
  for (const Value &extent : items[1].asSequence().items) {
    if (!extent.isInt())
      return std::nullopt;
    text += fmt::format("{},", extent.asInt());
  }
  return text + type + ")";
}

/// Returns the text of an argument of that schema type; nothing if the value does not fit.
static std::optional<std::string> inputText(const Value &value, std::string_view type) {
  bool isOptional = type.ends_with("?");
  if (value.isNone())
    return isOptional ? std::optional<std::string>("none") : std::nullopt;
  if (type == "Tensor[]") {
    if (!value.isSequence() || tensorText(value))
      return std::nullopt;
    std::string text = "[";
    for (const Value &item : value.asSequence().items) {
      auto tensor = tensorText(item);
      if (!tensor)
        return std::nullopt;
      text += (text.size() > 1 ? "," : "") + *tensor;
    }
    return text + "]";
  }
  if (type.starts_with("Tensor"))
    return tensorText(value);
  if (type == "bool")
    return value.isBool() ? std::optional<std::string>(value.asBool() ? "true" : "false") : std::nullopt;
  if (type == "int")
    return value.isInt() ? std::optional(fmt::format("{}", value.asInt())) : std::nullopt;
  if (type.starts_with("float")) {
    if (!value.isInt() && !value.isFloat())
      return std::nullopt;
    std::string text = fmt::format("{}", value.asNumber());
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text; // stays a float
  }
  if (type == "ScalarType")
    return value.isDType() ? std::optional(std::string(valueNameOf(value.asDType()))) : std::nullopt;
  if (type == "str")
    return value.isString() ? std::optional("'" + value.asString() + "'") : std::nullopt;
  if (type != "int[]" || !value.isSequence())
    return std::nullopt;
  std::string text = "[";
  for (const Value &item : value.asSequence().items) {
    if (!item.isInt())
      return std::nullopt;
    text += fmt::format("{}{}", text.size() > 1 ? "," : "", item.asInt());
  }
  return text + "]";
}

bool Checker::addCase(const FunctionEntity &function, const std::vector<KernelParameter> &parameters,
                      const std::vector<Value> &values, const OpRecord &op, TestRecord &test) {
  SourceRange range = function.syntax->signatureRange;
  TestCase added;
  added.title = function.name();
  for (size_t i = 0; i < values.size(); ++i)
    added.title += (i ? ", " : "[") + parameters[i].name + "=" + values[i].str();
  if (!values.empty())
    added.title += "]";
  DiagnosticEngine::InstanceScope context(diags, added.title, function.syntax->name.range);
  auto result = evaluator.call(function, values, {}, range);
  if (!result)
    return false;
  std::vector<Value> arguments = {*result};
  if (result->isSequence() && !result->asSequence().isList && !tensorText(*result))
    arguments = result->asSequence().items;
  if (arguments.size() > op.arguments.size()) {
    diags.report(diag::TooManyArguments, range, op.name, static_cast<int64_t>(op.arguments.size()));
    return false;
  }
  for (size_t i = 0; i < op.arguments.size(); ++i) {
    const OpArgument &argument = op.arguments[i];
    if (i >= arguments.size()) {
      if (argument.hasDefault)
        continue;
      diags.report(diag::MissingArgument, range, op.name, argument.name);
      return false;
    }
    auto text = inputText(arguments[i], argument.type);
    if (!text) {
      diags.report(diag::TypeMismatch, range, "argument `" + argument.name + "` of the case", arguments[i].str(),
                   argument.type);
      return false;
    }
    added.inputs.push_back(argument.name + "=" + *text);
  }
  test.cases.push_back(std::move(added));
  return true;
}

/// Reads the decorator: the op's name and the tolerance. Returns the op; null after an error.
const OpRecord *Checker::testedOp(const FunctionEntity &function, const ast::Decorator &decorator, TestRecord &test) {
  const ast::StringLiteral *name = nullptr;
  for (const ast::Argument &argument : decorator.arguments) {
    if (!argument.name && !name && (name = argument.value->as<ast::StringLiteral>()))
      continue;
    if (argument.name.text != "tolerance") {
      diags.report(diag::UnknownArgument, argument.range, "@register.test",
                   argument.name ? argument.name.text : "(by position)");
      return nullptr;
    }
    auto value = evaluator.evaluate(*argument.value, *function.module);
    if (!value)
      return nullptr;
    if ((!value->isInt() && !value->isFloat()) || !(value->asNumber() >= 0)) {
      diags.report(diag::TypeMismatch, argument.range, "`tolerance`", value->str(), "a number from 0 on");
      return nullptr;
    }
    test.tolerance = value->asNumber();
  }
  if (!name) {
    diags.report(diag::OpName, decorator.range, decorator.name);
    return nullptr;
  }
  auto found = opByName.find(name->value);
  if (found == opByName.end()) {
    diags.report(diag::UnknownOp, name->range, name->value);
    return nullptr;
  }
  test.op = name->value;
  return opInfos[found->second].isWrong ? nullptr : &program.opRecords[found->second];
}

void Checker::declareTests() {
  for (const auto &[function, decorator] : testFunctions) {
    TestRecord test;
    KernelRecord signature;
    std::vector<std::vector<Value>> instances;
    const OpRecord *op = testedOp(*function, *decorator, test);
    if (!op)
      continue;
    if (!function->syntax->parameters.empty()) {
      diags.report(diag::NotSupportedYet, function->syntax->parameters[0].range, "an argument of a test",
                   "write it in square brackets, and list its values in `@specialize`");
      continue;
    }
    if (!declareKernelParameters(*function, signature) || !specialisations(*function, signature.parameters, instances))
      continue;
    bool isGood = true;
    for (size_t i = 0; i < instances.size() && isGood; ++i)
      isGood = addCase(*function, signature.parameters, instances[i], *op, test);
    if (isGood)
      tests.push_back(std::move(test));
  }
}

} // namespace kpkg::compiler
