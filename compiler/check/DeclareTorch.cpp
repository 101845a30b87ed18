// Checks `@register.torch(autocast=..., dimensions=..., promotion=..., fallback=...)`, PyTorch's treatment of an op.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Elaborator.h"
#include "compiler/comptime/Fold.h"
#include "runtime/plan/Limits.h"

#include <algorithm>
#include <fmt/format.h>
#include <sstream>

namespace kpkg::compiler {

namespace {

using Words = std::vector<std::string>;
const Words autocastWords = {"lower", "float32", "promote", "first", "keep"};
const Words promotionWords = {"default", "int_to_float", "first"};
/// Words of `dimensions` that stand alone. "along" and "trailing" precede the name of an argument.
const Words dimensionsWords = {"elementwise", "last", "product", "linear"};
const char *const dimensionsExpected =
    "\"elementwise\", \"last\", \"along\" and the name of an Int argument, \"trailing\" and the name of a List[Int] "
    "argument, \"product\" or \"linear\"";

bool isIn(const Words &words, const std::string &text) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// Returns the words as a list: `"lower", "float32" or "keep"`.
std::string oneOf(const Words &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + ('"' + words[i] + '"');
  return text;
}

bool isTensor(const OpArgument &argument) { return argument.type == "Tensor" || argument.type == "Tensor?"; }

bool takesList(const OpRecord &op) {
  return std::any_of(op.arguments.begin(), op.arguments.end(),
                     [](const OpArgument &argument) { return argument.type == "Tensor[]"; });
}

bool hasArgument(const OpRecord &op, const std::string &name, const std::string &type) {
  return std::any_of(op.arguments.begin(), op.arguments.end(),
                     [&](const OpArgument &argument) { return argument.name == name && argument.type == type; });
}

/// Returns whether `text` is a word of `autocast`, perhaps with names of the tensors to which it applies.
bool isAutocast(const std::string &text, const OpRecord &op) {
  std::istringstream parts(text);
  std::string part;
  if (!(parts >> part) || !isIn(autocastWords, part))
    return false;
  while (parts >> part)
    if (std::none_of(op.arguments.begin(), op.arguments.end(),
                     [&](const OpArgument &argument) { return argument.name == part && isTensor(argument); }))
      return false;
  return true;
}

/// Returns the requirement of `dimensions` that the op does not meet, or an empty text.
std::string whatDimensionsNeed(const std::string &text, const OpRecord &op) {
  if (std::none_of(op.arguments.begin(), op.arguments.end(), isTensor))
    return "nothing: the op takes no tensor";
  if (text == "product" || text == "linear")
    return op.arguments.size() >= 2 && op.arguments[0].type == "Tensor" && op.arguments[1].type == "Tensor"
               ? ""
               : "two tensors in front of the other arguments";
  if (isIn(dimensionsWords, text) || (text.starts_with("along ") && hasArgument(op, text.substr(6), "int")) ||
      (text.starts_with("trailing ") && hasArgument(op, text.substr(9), "int[]")))
    return "";
  return dimensionsExpected;
}

/// Returns the values that the option `name` may have, or an empty text if `text` is one of them.
std::string whatIsExpected(const std::string &name, const std::string &text, const OpRecord &op) {
  if (name != "fallback" && takesList(op)) // these rules treat tensors one by one
    return "nothing: the op takes a list of tensors";
  if (name.starts_with("autocast"))
    return isAutocast(text, op) ? "" : oneOf(autocastWords) + ", and perhaps names of tensors behind it";
  if (name == "promotion")
    return isIn(promotionWords, text) ? "" : oneOf(promotionWords);
  if (name == "dimensions")
    return whatDimensionsNeed(text, op);
  return !text.empty() && text.size() <= plan::Limits::stringBytes
             ? ""
             : fmt::format("an expression or a function's body of at most {} bytes", plan::Limits::stringBytes);
}

/// Returns the texts that an option sets, or none for an unknown option.
std::vector<std::string *> textsOf(const std::string &option, TorchRules &rules) {
  if (option == "autocast")
    return {&rules.autocast.cpu, &rules.autocast.cuda};
  if (option == "autocast_cpu")
    return {&rules.autocast.cpu};
  if (option == "autocast_cuda")
    return {&rules.autocast.cuda};
  if (option == "dimensions")
    return {&rules.dimensions};
  if (option == "promotion")
    return {&rules.promotion};
  if (option == "fallback")
    return {&rules.fallback};
  return {};
}

} // namespace

bool Checker::declareTorch(const OpInfo &info, const ast::Decorator &decorator, OpRecord &record) {
  TorchRules rules;
  for (const ast::Argument &argument : decorator.arguments) {
    std::string name = argument.name ? argument.name.text : "(by position)";
    std::vector<std::string *> texts = textsOf(name, rules);
    if (texts.empty() || (record.isBackward && name != "fallback")) {
      diags.report(diag::UnknownArgument, argument.range, "@register.torch", name);
      return false;
    }
    auto value = evaluator.evaluate(*argument.value, instanceScope(*info.function, info.parameters));
    if (!value)
      return false;
    std::string text = value->isString() ? withParameters(value->asString(), info) : "";
    std::string expected = whatIsExpected(name, text, record);
    if (!value->isString() || !expected.empty()) {
      std::string found = value->isString() && name != "fallback" ? value->str() : kindName(*value);
      diags.report(diag::TorchRule, argument.value->range, name, found, expected.empty() ? "a String" : expected);
      return false;
    }
    for (std::string *each : texts)
      *each = text;
  }
  record.torch = std::move(rules);
  return true;
}

} // namespace kpkg::compiler
