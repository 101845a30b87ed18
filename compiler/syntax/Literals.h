// Values of number and string literals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Expr.h"
#include "compiler/diag/Diagnostics.h"
#include <string_view>

namespace kpkg::compiler {

/// `text` is the token as written. What is wrong is reported, and the result is then ErrorExpr.
ast::ExprPtr integerLiteral(std::string_view text, SourceRange range, DiagnosticEngine &diags);
ast::ExprPtr floatLiteral(std::string_view text, SourceRange range, DiagnosticEngine &diags);
/// Appends the value of one string token to `value`; false when something was reported.
bool appendString(std::string_view text, SourceRange range, std::string &value, DiagnosticEngine &diags);
/// A docstring without the indentation that its lines share and without blank lines at both ends.
std::string dedentDocstring(std::string_view text);

} // namespace kpkg::compiler
