// Declares the functions of modules.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Stmt.h"

namespace kpkg::compiler {

class Environment;

/// The role of a function, by its decorators.
enum class FunctionRole : uint8_t { Inline, Kernel, Op };

/// A function of a module. Entities live as long as the program.
struct FunctionEntity {
  const ast::FunctionStmt *syntax = nullptr;
  const Environment *module = nullptr;
  FunctionRole role = FunctionRole::Inline;
  /// Index of the kernel or op in the program.
  size_t index = 0;
  const std::string &name() const { return syntax->name.text; }
};

} // namespace kpkg::compiler
