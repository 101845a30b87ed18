// Text to syntax tree: the one entry point of the parser.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Stmt.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/source/Source.h"
#include <memory>

namespace kpkg::compiler {

/// Parses a file. What is wrong is reported to `diags`, several errors in one run; the module then holds what could be
/// understood, with ErrorExpr in the gaps, and should not be checked further. Never null, never throws, and safe on any
/// bytes: size, token count and nesting are limited.
std::unique_ptr<ast::Module> parse(const SourceFile &file, DiagnosticEngine &diags);

} // namespace kpkg::compiler
