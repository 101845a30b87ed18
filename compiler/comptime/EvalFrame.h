// Declares the variables of one comptime call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/comptime/Evaluate.h"

#include <map>

namespace kpkg::compiler {

/// One call: block scopes of variables over the names of the function's module.
class Evaluator::Frame : public Environment {
public:
  explicit Frame(const Environment &module) : module(module) { scopes.emplace_back(); }

  Meaning lookup(const std::string &name, SourceRange range) const override {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (auto found = scope->find(name); found != scope->end())
        return {Meaning::Known, found->second};
    return module.lookup(name, range);
  }
  Meaning lookupMember(const std::string &base, const std::string &name, SourceRange range) const override {
    return module.lookupMember(base, name, range);
  }
  void addNames(std::vector<std::string> &names) const override {
    for (const auto &scope : scopes)
      for (const auto &[name, value] : scope)
        names.push_back(name);
    module.addNames(names);
  }
  void declare(const std::string &name, Value value) { scopes.back()[name] = std::move(value); }
  Value *find(const std::string &name) {
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope)
      if (auto found = scope->find(name); found != scope->end())
        return &found->second;
    return nullptr;
  }
  void open() { scopes.emplace_back(); }
  void close() { scopes.pop_back(); }

  Value result;

private:
  const Environment &module;
  std::vector<std::map<std::string, Value>> scopes;
};

} // namespace kpkg::compiler
