// Evaluates number and string literals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Expr.h"
#include "compiler/diag/Diagnostics.h"
#include <string_view>

namespace kpkg::compiler {

/// Returns the literal; `text` is the token as written. After an error, which is reported, it is ErrorExpr.
ast::ExprPtr integerLiteral(std::string_view text, SourceRange range, DiagnosticEngine &diags);
ast::ExprPtr floatLiteral(std::string_view text, SourceRange range, DiagnosticEngine &diags);
/// Appends the value of one string token to `value`. Returns false after an error.
bool appendString(std::string_view text, SourceRange range, std::string &value, DiagnosticEngine &diags);
/// Returns a docstring without the indentation that its lines share, and without blank lines at both ends.
std::string dedentDocstring(std::string_view text);

} // namespace kpkg::compiler
