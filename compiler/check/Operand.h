// Declares the results of checking expressions: a comptime value, a node that runs later, or a tuple or struct of
// these.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Hir.h"

#include <optional>

namespace kpkg::compiler {

/// The result of checking an expression. Exactly one of `constant`, `node` and `items` (type Tuple or Struct) is in
/// use. A struct always has items: its comptime parameters, then its fields. None is in use if the type is Error, or
/// None without a value.
struct Operand {
  const Type *type = nullptr;
  std::optional<Value> constant;
  hir::Node *node = nullptr;
  std::vector<Operand> items;
  SourceRange range;

  bool isError() const { return type->isError(); }
  bool isConstant() const { return constant.has_value(); }
  bool isConstantInt() const { return constant && constant->isInt(); }
  bool isTuple() const { return type->kind == TypeKind::Tuple && !constant; }
  bool isStruct() const { return type->isStruct(); }
  bool isNone() const { return constant && constant->isNone(); }
};

/// The meaning of a name in a function body.
struct Binding {
  enum Kind {
    Alias,    ///< `operand`: a comptime value or a value computed once
    Variable, ///< `local`
    Tuple,    ///< `items`, which are variables or tuples of them
    Struct,   ///< `items`, the members of a value of `structure`: variables, structs, or what is never assigned
  };
  Kind kind = Alias;
  Operand operand;
  hir::Local *local = nullptr;
  std::vector<Binding> items = {};
  const StructEntity *structure = nullptr;
  SourceRange declared;
  /// Loop depth of ForTiles in which the variable was declared.
  unsigned tileDepth = 0;
};

} // namespace kpkg::compiler
