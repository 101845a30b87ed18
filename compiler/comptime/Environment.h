// Declares the meanings of names in comptime code.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/comptime/FunctionEntity.h"
#include "compiler/comptime/Value.h"

#include <string_view>
#include <vector>

namespace kpkg::compiler {

/// The meaning of a name in comptime code.
struct Meaning {
  enum Kind {
    Unknown,  ///< no such name: the evaluator reports it
    Known,    ///< `value`
    RunTime,  ///< exists only at run time: the evaluator reports it
    Reported, ///< an error that was reported already
  };
  Kind kind = Unknown;
  Value value;
};

/// Names that are visible to an expression. The checker implements it for modules and for function bodies.
class Environment {
public:
  virtual ~Environment() = default;
  virtual Meaning lookup(const std::string &name, SourceRange range) const = 0;
  /// Looks up `base.name` in an imported module or a tile; returns Unknown if `base` is neither.
  virtual Meaning lookupMember(const std::string &base, const std::string &name, SourceRange range) const = 0;
  /// Looks up `base.name`, where `base` is itself an attribute: a tile in a field of a struct, for example.
  virtual Meaning lookupAttribute(const ast::Expr &base, const std::string &name) const { return {}; }
  /// Adds the visible names, for messages about unknown names.
  virtual void addNames(std::vector<std::string> &names) const {}
};

/// The predefined name of the target, which `target.has("gpu")` queries.
inline constexpr std::string_view targetName = "target";

} // namespace kpkg::compiler
