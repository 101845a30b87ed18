// Binds arguments to the parameters of built-in functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Arguments.h"

namespace kpkg::compiler {

Arguments::Arguments(Elaborator &elaborator, const CallSite &site, const std::vector<ast::Argument> &given)
    : elaborator(elaborator), site(site), given(given), used(given.size()) {}

const ast::Expr *Arguments::named(std::string_view name) {
  for (size_t i = 0; i < given.size(); ++i)
    if (given[i].name && given[i].name.text == name && !used[i]) {
      used[i] = true;
      return given[i].value.get();
    }
  return nullptr;
}

const ast::Expr *Arguments::take(std::string_view name, bool isRequired) {
  if (position < given.size() && !given[position].name) {
    used[position] = true;
    return given[position++].value.get();
  }
  if (const ast::Expr *expr = named(name))
    return expr;
  if (isRequired && !isWrong) {
    elaborator.diags.report(diag::MissingArgument, site.range(), site.name, name);
    isWrong = true;
  }
  return nullptr;
}

std::vector<const ast::Expr *> Arguments::rest() {
  std::vector<const ast::Expr *> exprs;
  while (position < given.size() && !given[position].name) {
    used[position] = true;
    exprs.push_back(given[position++].value.get());
  }
  return exprs;
}

bool Arguments::finish() {
  for (size_t i = 0; i < given.size() && !isWrong; ++i) {
    if (used[i])
      continue;
    isWrong = true;
    if (given[i].name)
      elaborator.diags.report(diag::UnknownArgument, given[i].range, site.name, given[i].name.text);
    else
      elaborator.diags.report(diag::TooManyArguments, given[i].range, site.name, static_cast<int64_t>(position));
  }
  return !isWrong;
}

} // namespace kpkg::compiler
