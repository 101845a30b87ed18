// Takes the arguments of a built-in call one after the other, by position or by name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Elaborator.h"

namespace kpkg::compiler {

/// Usage: take() each argument in order, then finish(); anything missing, unknown or left over is reported once.
class Arguments {
public:
  Arguments(Elaborator &elaborator, const CallSite &site, const std::vector<ast::Argument> &given);
  Arguments(Elaborator &elaborator, const CallSite &site) : Arguments(elaborator, site, *site.arguments) {}

  /// The next argument by position, or the one called `name`. Null when it is absent (reported when it is required).
  const ast::Expr *take(std::string_view name, bool isRequired = true);
  /// The one called `name`, never by position. Null when absent.
  const ast::Expr *named(std::string_view name);
  /// The remaining arguments by position.
  std::vector<const ast::Expr *> rest();
  /// False when something was wrong; reports what is left over.
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
