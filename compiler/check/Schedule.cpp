// Evaluates the hints of `@schedule` for one instance.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/check/Frame.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

namespace {
using tile::HintKind, tile::HintRecord;

/// Returns the number that encodes the value of a hint; nothing for an unsuitable value.
std::optional<int64_t> numberFor(const HintRecord &hint, const Value &value) {
  if (hint.kind == HintKind::Bool)
    return value.isBool() ? std::optional<int64_t>(value.asBool()) : std::nullopt;
  return value.isInt() && isValueOf(hint, value.asInt()) ? std::optional(value.asInt()) : std::nullopt;
}

std::string expected(const HintRecord &hint) {
  if (hint.kind == HintKind::Bool)
    return "a Bool";
  return fmt::format("{} up to {}, or 0 for the compiler's choice",
                     hint.kind == HintKind::PowerOfTwo ? "a power of two" : "an Int", hint.most);
}
} // namespace

bool Checker::evaluateSchedule(const FunctionEntity &function, const Environment &values, KernelInstance &instance) {
  for (const ast::Decorator &decorator : function.syntax->decorators) {
    if (decorator.name != "schedule")
      continue;
    for (const ast::Argument &argument : decorator.arguments) {
      const HintRecord *hint = tile::findHint(argument.name.text);
      if (!hint) {
        diags.report(diag::UnknownArgument, argument.range, "@schedule",
                     argument.name ? argument.name.text : "(by position)");
        return false;
      }
      auto value = evaluator.evaluate(*argument.value, values);
      if (!value)
        return false;
      std::optional<int64_t> number = numberFor(*hint, *value);
      if (!number) {
        diags.report(diag::TypeMismatch, argument.value->range, fmt::format("`{}`", hint->name),
                     value->isInt() ? value->str() : kindName(*value), expected(*hint));
        return false;
      }
      if (hint->kind == HintKind::Bool && *number != 0 && !isPersistent(*function.syntax)) {
        diags.report(diag::NotSupportedYet, argument.value->range,
                     "`dynamic` in a kernel that does not go over `output_tiles`",
                     "leave it out: the blocks of a grid begin as others end anyway");
        return false;
      }
      instance.schedule.set(hint->hint, *number);
    }
  }
  return true;
}

} // namespace kpkg::compiler
