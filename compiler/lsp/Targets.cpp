// Follows names through imports to the symbols that they refer to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Workspace.h"
#include <algorithm>

namespace kpkg::lsp {

/// Imports of imports are followed so far; circles end there.
static constexpr unsigned maxImports = 16;

std::optional<Target> Workspace::follow(const File &from, size_t symbol, unsigned depth) {
  const Symbol &found = from.names->symbols[symbol];
  if (found.kind != SymbolKind::Imported)
    return Target{from.path, symbol};
  File *module = depth < maxImports ? moduleOf(from, found.module) : nullptr;
  return module ? exported(*module, found.importedName, depth + 1) : std::nullopt;
}

std::optional<Target> Workspace::exported(File &file, const std::string &name, unsigned depth) {
  auto found = file.names->ofModule.find(name);
  return found == file.names->ofModule.end() ? std::nullopt : follow(file, found->second, depth);
}

std::optional<Target> Workspace::targetOf(const File &from, size_t symbol) { return follow(from, symbol, 0); }

/// Returns the parameter of a function, or the member of a struct, with that name; noSymbol if it has none.
static size_t memberOf(const Names &names, const Symbol &owner, const std::string &name) {
  for (const auto *list : {&owner.comptimeParameters, &owner.parameters, &owner.methods})
    for (size_t parameter : *list)
      if (names.symbols[parameter].name == name)
        return parameter;
  return noSymbol;
}

std::optional<Target> Workspace::targetOf(const File &from, const Use &use) {
  switch (use.kind) {
  case Use::Declaration:
  case Use::Reference:
    return follow(from, use.symbol, 0);
  case Use::Member: {
    File *module = moduleOf(from, from.names->symbols[use.symbol].module);
    return module ? exported(*module, use.name, 0) : std::nullopt;
  }
  case Use::Argument: {
    Use callee = use;
    callee.kind = use.member.empty() ? Use::Reference : Use::Member;
    callee.name = use.member;
    auto target = targetOf(from, callee);
    File *of = target ? file(target->path) : nullptr;
    size_t parameter = of ? memberOf(*of->names, of->names->symbols[target->symbol], use.name) : noSymbol;
    return parameter == noSymbol ? std::nullopt : std::optional(Target{target->path, parameter});
  }
  case Use::Other:
    return isPrelude(from.path) ? std::nullopt : exported(prelude(), use.name, 0);
  case Use::Attribute: {
    const Types::Entry *types = typesOf(from, use.base);
    File *of = types && !types->types[0].structName.empty() ? file(types->types[0].structPath) : nullptr;
    auto target = of ? exported(*of, types->types[0].structName, 0) : std::nullopt;
    size_t member = target ? memberOf(*of->names, of->names->symbols[target->symbol], use.name) : noSymbol;
    return member == noSymbol ? std::nullopt : std::optional(Target{target->path, member});
  }
  case Use::ModuleFile:
    break;
  }
  return std::nullopt;
}

std::vector<Place> Workspace::usesOf(const Target &target) {
  std::vector<Place> places;
  const Symbol wanted = symbol(target);
  bool isLocal = wanted.kind == SymbolKind::Variable || wanted.kind == SymbolKind::LoopVariable ||
                 (wanted.kind == SymbolKind::Constant && !wanted.isOfModule()); // other sources may name all else
  std::vector<File *> among = all();
  File *own = file(target.path);
  if (isLocal)
    among = {own};
  else if (std::find(among.begin(), among.end(), own) == among.end())
    among.push_back(own);
  for (File *one : among) {
    for (const Use &use : one->names->uses) {
      const Symbol *used = use.symbol == noSymbol ? nullptr : &one->names->symbols[use.symbol];
      bool mayBe = use.name == wanted.name || (used && used->importedName == wanted.name);
      if (mayBe && targetOf(*one, use) == target)
        if (auto span = current(*one, use.span))
          places.push_back({one, *span});
    }
  }
  return places;
}

} // namespace kpkg::lsp
