// Declares the names of one source file: its constants, functions, structs and imports.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/check/Context.h"

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kpkg::compiler {

class Checker;

/// A loaded module. Constants are evaluated on first use.
class ModuleScope : public Environment {
public:
  ModuleScope(CheckContext &context, std::string path, std::shared_ptr<const ast::Module> tree)
      : context(context), path(std::move(path)), tree(std::move(tree)) {}

  Meaning lookup(const std::string &name, SourceRange range) const override;
  Meaning lookupMember(const std::string &module, const std::string &name, SourceRange range) const override;

  void addNames(std::vector<std::string> &names) const override;

  /// Looks up a name that the module itself declares or imports, not the prelude's.
  Meaning own(const std::string &name, SourceRange range) const;
  bool hasModuleAlias(const std::string &name) const;
  /// Returns where the module declares a name; invalid if it does not.
  SourceRange declaration(const std::string &name) const;

  CheckContext &context;
  const std::string path;
  const std::shared_ptr<const ast::Module> tree;
  bool isRoot = false;
  std::deque<FunctionEntity> functions;
  std::deque<StructEntity> structs;

private:
  friend class Checker;
  struct Entry {
    enum Kind { Constant, Function, Struct, Module, Imported } kind = Constant;
    SourceRange range;
    const ast::ComptimeConstStmt *constant = nullptr;
    const FunctionEntity *function = nullptr;
    const StructEntity *structure = nullptr;
    ModuleScope *module = nullptr; // Module, Imported
    std::string importedName;      // Imported
    enum State { Waiting, Running, Done, Failed } state = Waiting;
    Value value;
  };

  mutable std::map<std::string, Entry> entries;
};

} // namespace kpkg::compiler
