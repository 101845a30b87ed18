// Evaluates the hints of `@schedule` for one instance.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/check/Frame.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

namespace {
enum class Kind { Count, PowerOfTwo, Bool };
struct Hint {
  const char *name;
  int64_t most;
  Kind kind;
};
constexpr Hint hints[] = {{"warps", 32, Kind::PowerOfTwo},   {"occupancy", 32, Kind::Count},
                          {"cluster", 16, Kind::PowerOfTwo}, {"stages", 16, Kind::Count},
                          {"peel", 1, Kind::Count},          {"dynamic", 1, Kind::Bool},
                          {"roles", 3, Kind::Count}};

/// Returns the number that encodes the value of a hint; nothing for an unsuitable value.
std::optional<int64_t> numberFor(const Hint &hint, const Value &value) {
  if (hint.kind == Kind::Bool)
    return value.isBool() ? std::optional<int64_t>(value.asBool()) : std::nullopt;
  bool fits = value.isInt() && value.asInt() >= 0 && value.asInt() <= hint.most &&
              (hint.kind != Kind::PowerOfTwo || (value.asInt() & (value.asInt() - 1)) == 0);
  return fits ? std::optional(value.asInt()) : std::nullopt;
}

std::string expected(const Hint &hint) {
  if (hint.kind == Kind::Bool)
    return "a Bool";
  return fmt::format("{} up to {}, or 0 for the compiler's choice",
                     hint.kind == Kind::PowerOfTwo ? "a power of two" : "an Int", hint.most);
}
} // namespace

bool Checker::evaluateSchedule(const FunctionEntity &function, const Environment &values, KernelInstance &instance) {
  for (const ast::Decorator &decorator : function.syntax->decorators) {
    if (decorator.name != "schedule")
      continue;
    for (const ast::Argument &argument : decorator.arguments) {
      const Hint *hint = std::find_if(std::begin(hints), std::end(hints),
                                      [&](const Hint &known) { return argument.name.text == known.name; });
      if (hint == std::end(hints)) {
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
      if (hint->kind == Kind::Bool && *number != 0 && !isPersistent(*function.syntax)) {
        diags.report(diag::NotSupportedYet, argument.value->range,
                     "`dynamic` in a kernel that does not go over `output_tiles`",
                     "leave it out: the blocks of a grid begin as others end anyway");
        return false;
      }
      if (*number != 0)
        instance.schedule[hint->name] = *number;
    }
  }
  return true;
}

} // namespace kpkg::compiler
