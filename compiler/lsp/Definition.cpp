// Finds definitions and references.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Features.h"
#include <algorithm>

namespace kpkg::lsp {

using llvm::lsp::Location;

static std::optional<Location> locationOf(const Place &place) {
  auto uri = llvm::lsp::URIForFile::fromURI(place.file->uri);
  if (!uri) {
    llvm::consumeError(uri.takeError());
    return std::nullopt;
  }
  return Location(*uri, rangeOf(*place.file->text, place.span));
}

/// Returns the target of the occurrence at an offset; nothing if no source declares it.
static std::optional<Target> targetAt(Workspace &workspace, const File &file, uint32_t offset) {
  const Use *use = workspace.useAt(file, offset);
  return use ? workspace.targetOf(file, *use) : std::nullopt;
}

std::vector<Location> definitionAt(Workspace &workspace, const File &file, uint32_t offset) {
  const Use *use = workspace.useAt(file, offset);
  if (!use)
    return {};
  std::vector<Location> found;
  auto add = [&](const File &of, Span span) {
    auto now = workspace.current(of, span);
    if (auto location = now && !workspace.isPrelude(of.path) ? locationOf({&of, *now}) : std::nullopt)
      found.push_back(*location);
  };
  auto target = workspace.targetOf(file, *use);
  bool isModule = use->kind == Use::ModuleFile || (target && workspace.symbol(*target).kind == SymbolKind::Module);
  if (isModule) {
    const Symbol &import = target ? workspace.symbol(*target) : file.names->symbols[use->symbol];
    if (File *module = workspace.moduleOf(file, import.module))
      add(*module, {});
  } else if (target) {
    for (const Span &span : workspace.symbol(*target).declarations)
      add(*workspace.file(target->path), span);
  }
  return found;
}

std::vector<Location> referencesAt(Workspace &workspace, const File &file, uint32_t offset, bool withDeclarations) {
  std::vector<Location> found;
  auto target = targetAt(workspace, file, offset);
  if (!target)
    return found;
  const std::vector<Span> declarations = workspace.symbol(*target).declarations;
  for (const Place &place : workspace.usesOf(*target)) {
    bool isDeclaration = place.file->path == target->path &&
                         std::any_of(declarations.begin(), declarations.end(), [&](const Span &span) {
                           return workspace.current(*place.file, span) == place.span;
                         });
    if (isDeclaration && !withDeclarations)
      continue;
    if (auto location = locationOf(place))
      found.push_back(*location);
  }
  return found;
}

std::vector<llvm::lsp::Range> highlightsAt(Workspace &workspace, const File &file, uint32_t offset) {
  std::vector<llvm::lsp::Range> found;
  auto target = targetAt(workspace, file, offset);
  for (const Use &use : file.names->uses)
    if (target && workspace.targetOf(file, use) == target)
      if (auto span = workspace.current(file, use.span))
        found.push_back(rangeOf(*file.text, *span));
  return found;
}

} // namespace kpkg::lsp
