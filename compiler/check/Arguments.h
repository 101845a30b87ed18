// Takes the arguments of a built-in call one after the other, by position or by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Elaborator.h"

namespace kpkg::compiler {

/// Usage: take() each argument in order, then finish(). Missing, unknown and extra arguments are reported once.
class Arguments {
public:
  Arguments(Elaborator &elaborator, const CallSite &site, const std::vector<ast::Argument> &given);
  Arguments(Elaborator &elaborator, const CallSite &site) : Arguments(elaborator, site, *site.arguments) {}

  /// Returns the next argument by position, or the argument called `name`. Null if it is absent, which is reported if
  /// it is required.
  const ast::Expr *take(std::string_view name, bool isRequired = true);
  /// Returns the argument called `name`, never by position. Null if absent.
  const ast::Expr *named(std::string_view name);
  /// Returns the remaining positional arguments.
  std::vector<const ast::Expr *> rest();
  /// Reports extra arguments. Returns false after any error.
  bool finish();

private:
  Elaborator &elaborator;
  const CallSite &site;
  const std::vector<ast::Argument> &given;
  std::vector<bool> used;
  size_t position = 0;
  bool isWrong = false;
};

} // namespace kpkg::compiler
