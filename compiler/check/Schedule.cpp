// The hints of `@schedule`, evaluated for one instance.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Checker.h"
#include "compiler/comptime/Fold.h"

namespace kpkg::compiler {

namespace {
struct Hint {
  const char *name;
  int64_t most;
  bool isPowerOfTwo;
};
constexpr Hint hints[] = {{"warps", 32, true}, {"occupancy", 32, false}, {"cluster", 16, true}, {"stages", 16, false}, {"peel", 1, false}};

std::string expected(const Hint &hint) {
  return fmt::format("{} up to {}, or 0 for the compiler's choice", hint.isPowerOfTwo ? "a power of two" : "an Int", hint.most);
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
        diags.report(diag::UnknownArgument, argument.range, "@schedule", argument.name ? argument.name.text : "(by position)");
        return false;
      }
      auto value = evaluator.evaluate(*argument.value, values);
      if (!value)
        return false;
      bool fits = value->isInt() && value->asInt() >= 0 && value->asInt() <= hint->most &&
                  (!hint->isPowerOfTwo || (value->asInt() & (value->asInt() - 1)) == 0);
      if (!fits) {
        diags.report(diag::TypeMismatch, argument.value->range, fmt::format("`{}`", hint->name),
                     value->isInt() ? value->str() : kindName(*value), expected(*hint));
        return false;
      }
      if (value->asInt() != 0)
        instance.schedule[hint->name] = value->asInt();
    }
  }
  return true;
}

} // namespace kpkg::compiler
