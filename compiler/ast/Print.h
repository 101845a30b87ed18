// Prints a syntax tree as nested lists, for tests and debugging.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Stmt.h"
#include <string>

namespace kpkg::compiler::ast {

/// "(binary + x (int 1))": one line.
std::string print(const Expr &expr);
/// A statement a line, blocks indented by two spaces.
std::string print(const Module &module);

} // namespace kpkg::compiler::ast
