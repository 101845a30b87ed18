// Prints a syntax tree as nested lists, for tests and debugging.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Stmt.h"
#include <string>

namespace kpkg::compiler::ast {

/// Prints an expression on one line: "(binary + x (int 1))".
std::string print(const Expr &expr);
/// Prints one statement per line, with blocks indented by two spaces.
std::string print(const Module &module);

} // namespace kpkg::compiler::ast
