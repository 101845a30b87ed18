// Declares backward ops: binds their parameters by name, from `@register.backward("op", saves=[...])`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/comptime/Fold.h"

#include <algorithm>

namespace kpkg::compiler {

namespace {

using Source = BackwardArgument::Kind;

bool isTensor(const OpArgument &argument) { return argument.type == "Tensor" || argument.type == "Tensor?"; }

/// Returns the index of a result named "out" (of one result) or "out0", "out1", ... (of several).
std::optional<size_t> resultNamed(const std::string &name, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (name == (count == 1 ? "out" : "out" + std::to_string(i)))
      return i;
  return std::nullopt;
}

std::optional<size_t> argumentNamed(const std::string &name, const OpRecord &op) {
  for (size_t i = 0; i < op.arguments.size(); ++i)
    if (op.arguments[i].name == name)
      return i;
  return std::nullopt;
}

/// Returns the meaning of a name in `saves` or of a parameter. An argument hides a result; both hide a `needs_...` and
/// `deterministic`.
std::optional<BackwardArgument> meaningOf(const std::string &name, const OpRecord &op) {
  if (auto argument = argumentNamed(name, op))
    return BackwardArgument{Source::Argument, *argument};
  if (auto result = resultNamed(name, op.results.size()))
    return BackwardArgument{Source::Result, *result};
  if (name.starts_with("needs_"))
    if (auto argument = argumentNamed(name.substr(6), op); argument && isTensor(op.arguments[*argument]))
      return BackwardArgument{Source::Needs, *argument};
  if (name == "deterministic")
    return BackwardArgument{Source::Deterministic, 0};
  return std::nullopt;
}

bool isSavedTensor(const BackwardArgument &meaning, const OpRecord &op) {
  return meaning.kind == Source::Result || (meaning.kind == Source::Argument && isTensor(op.arguments[meaning.index]));
}

/// Returns why an op has no gradient; empty if it may have one.
std::string whyNone(const OpRecord &op) {
  if (op.isBackward || op.isReference)
    return "it is the backward or the reference of another one";
  for (const OpArgument &argument : op.arguments)
    if (argument.isMut)
      return "it writes to `mut " + argument.name + "`";
  for (const OpArgument &argument : op.arguments)
    if (argument.type == "Tensor[]")
      return "it takes `" + argument.name + "`, a list of tensors";
  if (std::none_of(op.arguments.begin(), op.arguments.end(), isTensor))
    return "it takes no tensor";
  if (std::find(op.results.begin(), op.results.end(), "Tensor?") != op.results.end())
    return "it returns an Optional[Tensor]";
  return "";
}

} // namespace

void Checker::linkBackwards() {
  for (const auto &[backward, name, decorator] : backwards) {
    auto found = opByName.find(name);
    if (found == opByName.end())
      diags.report(diag::UnknownOp, decorator->arguments[0].range, name);
    else if (!opInfos[backward].isWrong && !opInfos[found->second].isWrong)
      linkBackward(backward, found->second, *decorator);
  }
}

/// The names that a backward lists as saved tensors.
struct Checker::SavedNames {
  std::vector<std::string> names;
  SourceRange range;
  bool has(const std::string &name) const { return std::find(names.begin(), names.end(), name) != names.end(); }
};

/// Reads `saves` of a backward. Returns nothing after an error.
std::optional<Checker::SavedNames> Checker::savedNames(const FunctionEntity &backward, const OpRecord &op,
                                                       const ast::Decorator &decorator) {
  SavedNames saved;
  for (size_t i = 1; i < decorator.arguments.size(); ++i) {
    const ast::Argument &argument = decorator.arguments[i];
    if (argument.name.text != "saves") {
      diags.report(diag::UnknownArgument, argument.range, "@register.backward",
                   argument.name ? argument.name.text : "(by position)");
      return std::nullopt;
    }
    auto names = evaluator.evaluate(*argument.value, *backward.module);
    if (!names)
      return std::nullopt;
    saved.range = argument.value->range;
    bool areNames = names->isSequence();
    for (const Value &name : areNames ? names->asSequence().items : std::vector<Value>())
      areNames &= name.isString();
    if (!areNames) {
      diags.report(diag::TypeMismatch, saved.range, "`saves`", kindName(*names), "a list of names");
      return std::nullopt;
    }
    for (const Value &name : names->asSequence().items)
      saved.names.push_back(name.asString());
  }
  for (const std::string &name : saved.names) {
    auto meaning = meaningOf(name, op);
    if (!meaning || !isSavedTensor(*meaning, op)) {
      diags.report(diag::SavedName, saved.range, name, "which is no tensor argument and no result of `" + op.name + "`")
          .note(diag::DeclaredHere, op.range, op.name);
      return std::nullopt;
    }
  }
  return saved;
}

/// Gives each parameter of a backward its meaning. Returns false after an error.
bool Checker::bindBackward(const std::vector<ast::Parameter> &parameters, const OpRecord &backward, const OpRecord &op,
                           const SavedNames &saved, std::vector<BackwardArgument> &arguments) {
  bool inGradients = true;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::string &name = parameters[i].name.text;
    auto wrong = [&](const std::string &what) {
      diags.report(diag::BackwardParameter, parameters[i].range, name, op.name, what)
          .note(diag::DeclaredHere, op.range, op.name);
      return false;
    };
    if (parameters[i].isMut)
      return wrong("`mut`, but a backward returns its gradients");
    auto meaning = meaningOf(name, op);
    inGradients &= !meaning;
    if (inGradients && i < op.results.size())
      meaning = BackwardArgument{Source::Gradient, i};
    if (!meaning)
      return wrong(
          "neither the gradient of a result nor an argument, a result, `needs_` and an argument, or `deterministic`");
    if (isSavedTensor(*meaning, op) && !saved.has(name))
      return wrong("a tensor that `saves` does not list");
    bool isFlag = meaning->kind == Source::Needs || meaning->kind == Source::Deterministic;
    std::string wanted = meaning->kind == Source::Argument ? op.arguments[meaning->index].type
                         : isFlag                          ? "bool"
                                                           : "Tensor";
    if (wanted != backward.arguments[i].type)
      return wrong("`" + backward.arguments[i].type + "`, but that is `" + wanted + "`");
    arguments.push_back(*meaning);
  }
  return true;
}

/// Sets the op's `backward`, or reports why that is impossible.
void Checker::linkBackward(size_t backwardIndex, size_t opIndex, const ast::Decorator &decorator) {
  OpRecord &op = program.opRecords[opIndex];
  const OpRecord &backward = program.opRecords[backwardIndex];
  const FunctionEntity &function = *opInfos[backwardIndex].function;
  const std::vector<ast::Parameter> &parameters = function.syntax->parameters;
  if (std::string why = whyNone(op); !why.empty()) {
    diags.report(diag::NoBackward, decorator.arguments[0].range, op.name, why)
        .note(diag::DeclaredHere, op.range, op.name);
    return;
  }
  auto saved = savedNames(function, op, decorator);
  if (!saved)
    return;
  Backward link;
  link.op = backward.name;
  if (!bindBackward(parameters, backward, op, *saved, link.arguments))
    return;
  if (link.arguments.empty() || link.arguments[0].kind != Source::Gradient) {
    diags.report(diag::NoBackward, decorator.arguments[0].range, op.name,
                 "its first parameter must be the gradient of the result");
    return;
  }
  for (const std::string &name : saved->names)
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const auto &parameter) { return parameter.name.text == name; })) {
      diags.report(diag::SavedName, saved->range, name, "but no parameter takes it");
      return;
    }

  auto tensors = std::count_if(op.arguments.begin(), op.arguments.end(), isTensor);
  if (backward.results.size() != static_cast<size_t>(tensors)) {
    diags
        .report(diag::BackwardResults, backward.range, op.name, static_cast<int64_t>(backward.results.size()),
                static_cast<int64_t>(tensors))
        .note(diag::DeclaredHere, op.range, op.name);
    return;
  }
  op.backward = std::move(link);
}

} // namespace kpkg::compiler
