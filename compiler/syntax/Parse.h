// Declares the parser's only entry point: text to syntax tree.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Stmt.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/source/Source.h"
#include <memory>

namespace kpkg::compiler {

/// Parses a file. Reports several errors in one run to `diags`. After errors, the module has the parts that were
/// understood, with ErrorExpr in the gaps, and must not be checked further.
///
/// Never returns null and never throws. It is safe for any bytes: size, token count and nesting are limited.
std::unique_ptr<ast::Module> parse(const SourceFile &file, DiagnosticEngine &diags);

} // namespace kpkg::compiler
