// Declares the functions and structs of modules.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Stmt.h"
#include <deque>

namespace kpkg::compiler {

class Environment;
struct StructEntity;

/// The role of a function, by its decorators.
enum class FunctionRole : uint8_t { Inline, Kernel, Op };

/// A function of a module. Entities live as long as the program.
struct FunctionEntity {
  const ast::FunctionStmt *syntax = nullptr;
  const Environment *module = nullptr;
  FunctionRole role = FunctionRole::Inline;
  /// Index of the kernel or op in the program.
  size_t index = 0;
  /// The struct of a method; null for other functions.
  const StructEntity *owner = nullptr;
  const std::string &name() const { return syntax->name.text; }
};

/// A struct of a module. Entities live as long as the program.
///
/// A value of the struct has members: its comptime parameters, then its fields, in source order.
struct StructEntity {
  const ast::StructStmt *syntax = nullptr;
  const Environment *module = nullptr;
  std::deque<FunctionEntity> methods;

  const std::string &name() const { return syntax->name.text; }
  size_t parameterCount() const { return syntax->comptimeParameters.size(); }
  size_t memberCount() const { return parameterCount() + syntax->fields.size(); }
  /// Returns the name of a member as declared.
  const ast::Identifier &member(size_t number) const {
    return number < parameterCount() ? syntax->comptimeParameters[number].name
                                     : syntax->fields[number - parameterCount()].name;
  }
  /// Returns the number of the member of that name; memberCount() if there is none.
  size_t find(std::string_view memberName) const {
    size_t number = 0;
    while (number < memberCount() && member(number).text != memberName)
      ++number;
    return number;
  }
  /// Returns the method of that name; null if there is none.
  const FunctionEntity *method(std::string_view methodName) const {
    for (const FunctionEntity &one : methods)
      if (one.name() == methodName)
        return &one;
    return nullptr;
  }
};

} // namespace kpkg::compiler
