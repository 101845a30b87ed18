// Renames symbols in all sources that refer to them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Features.h"
#include "compiler/syntax/Keywords.h"
#include "compiler/syntax/Parse.h"
#include <algorithm>
#include <fmt/format.h>

namespace kpkg::lsp {

namespace {

using llvm::Expected;

template <typename... Args> llvm::Error refused(fmt::format_string<Args...> text, Args &&...args) {
  return llvm::make_error<llvm::lsp::LSPError>(fmt::format(text, std::forward<Args>(args)...),
                                               llvm::lsp::ErrorCode::RequestFailed);
}

/// What to rename: a symbol, or the alias of an import in one file.
struct Renaming {
  Target target;
  bool isAlias = false;
  Span span; ///< of the occurrence, in the current text
};

/// Returns the spans of a file to replace, in its current text.
std::map<const File *, std::vector<Span>> spansOf(Workspace &workspace, const Renaming &renaming) {
  std::map<const File *, std::vector<Span>> spans;
  const std::string name = workspace.symbol(renaming.target).name;
  if (renaming.isAlias) {
    File &file = *workspace.file(renaming.target.path);
    for (const Use &use : file.names->uses)
      if (use.symbol == renaming.target.symbol && use.name == name &&
          (use.kind == Use::Declaration || use.kind == Use::Reference))
        spans[&file].push_back(use.span);
    return spans;
  }
  for (const Place &place : workspace.usesOf(renaming.target))
    if (place.file->text->slice({0, place.span.begin, place.span.end}) == name) // aliases keep their names
      spans[place.file].push_back(place.span);
  return spans;
}

Expected<Renaming> find(Workspace &workspace, const File &file, uint32_t offset) {
  const Use *use = workspace.useAt(file, offset);
  auto target = use ? workspace.targetOf(file, *use) : std::nullopt;
  if (!target)
    return refused("there is no name here that a source of this folder declares");
  auto span = workspace.current(file, use->span);
  if (!span)
    return refused("this line has changed since the last text without syntax errors");
  const Symbol *local = use->symbol == noSymbol ? nullptr : &file.names->symbols[use->symbol];
  bool isOfLocal = local && (use->kind == Use::Declaration || use->kind == Use::Reference);
  if (isOfLocal && local->hasAlias)
    return Renaming{{file.path, use->symbol}, true, *span};
  const Symbol &symbol = workspace.symbol(*target);
  if (workspace.isPrelude(target->path))
    return refused("`{}` is a name of the language", symbol.name);
  if (symbol.kind == SymbolKind::Module)
    return refused("`{}` is the name of a file: rename that", symbol.name);
  const Names &names = *workspace.file(target->path)->names;
  bool isOfOp = symbol.kind == SymbolKind::Parameter && names.symbols[symbol.function].role.starts_with("register.");
  if (isOfOp)
    return refused("`{}` is an argument of an op: callers, references and gradients know it by this name", symbol.name);
  return Renaming{*target, false, *span};
}

/// Returns the text with the spans replaced.
std::string replaced(std::string_view text, std::vector<Span> spans, const std::string &newName) {
  std::sort(spans.begin(), spans.end());
  std::string result;
  uint32_t at = 0;
  for (const Span &span : spans) {
    result += std::string(text.substr(at, span.begin - at)) + newName;
    at = span.end;
  }
  return result + std::string(text.substr(at));
}

/// Returns, for each occurrence, the number of the occurrence that declares it. Equal lists mean equal references.
std::vector<std::pair<Use::Kind, size_t>> structureOf(const Names &names) {
  std::map<size_t, size_t> declarations;
  std::vector<std::pair<Use::Kind, size_t>> structure;
  for (const Use &use : names.uses)
    if (use.symbol != noSymbol)
      structure.emplace_back(use.kind, declarations.emplace(use.symbol, declarations.size()).first->second);
    else
      structure.emplace_back(use.kind, noSymbol);
  return structure;
}

/// Returns whether a function or module that declares a renamed symbol declares the new name, too.
bool declaresBoth(const Names &names, const std::vector<Span> &spans, const std::string &newName) {
  std::set<size_t> functions;
  for (const Use &use : names.uses)
    if (use.kind == Use::Declaration && std::find(spans.begin(), spans.end(), use.span) != spans.end())
      functions.insert(names.symbols[use.symbol].function);
  return std::any_of(names.symbols.begin(), names.symbols.end(),
                     [&](const Symbol &symbol) { return symbol.name == newName && functions.count(symbol.function); });
}

/// Returns whether a file refers to the same things under the new name.
bool keepsReferences(const File &file, const std::vector<Span> &spans, const std::string &newName) {
  if (declaresBoth(*file.names, spans, newName))
    return false;
  Text text = makeText(file.path, replaced(file.text->text(), spans, newName));
  compiler::DiagnosticEngine diags;
  auto module = compiler::parse(*text, diags);
  return !diags.hasErrors() && structureOf(namesOf(*text, *module)) == structureOf(*file.names);
}

/// Returns whether a file is that path, or imports it.
bool sees(Workspace &workspace, const File &file, const std::string &path) {
  if (file.path == path)
    return true;
  return std::any_of(file.names->symbols.begin(), file.names->symbols.end(), [&](const Symbol &symbol) {
    const File *module = symbol.module.empty() ? nullptr : workspace.moduleOf(file, symbol.module);
    return module && module->path == path;
  });
}

/// Returns a file with an attribute that may be the member of a struct that is renamed: no check has reached its base.
/// Null if there is none.
const File *fileWithUnresolvedUse(Workspace &workspace, const Renaming &renaming) {
  const Symbol renamed = workspace.symbol(renaming.target);
  const Names &names = *workspace.file(renaming.target.path)->names;
  if (renamed.function == noSymbol || names.symbols[renamed.function].kind != SymbolKind::Struct)
    return nullptr;
  for (File *file : workspace.all())
    for (const Use &use : file->names->uses)
      if (use.kind == Use::Attribute && use.name == renamed.name && !workspace.typesOf(*file, use.base) &&
          sees(workspace, *file, renaming.target.path))
        return file;
  return nullptr;
}

} // namespace

Expected<llvm::lsp::Range> renameableAt(Workspace &workspace, const File &file, uint32_t offset) {
  auto renaming = find(workspace, file, offset);
  if (!renaming)
    return renaming.takeError();
  return rangeOf(*file.text, renaming->span);
}

Expected<llvm::lsp::WorkspaceEdit> renamed(Workspace &workspace, const File &file, uint32_t offset,
                                           const std::string &newName) {
  if (!compiler::isName(newName))
    return refused("`{}` is not a name", newName);
  auto renaming = find(workspace, file, offset);
  if (!renaming)
    return renaming.takeError();
  llvm::lsp::WorkspaceEdit edit;
  if (const File *unknown = fileWithUnresolvedUse(workspace, *renaming))
    return refused("a `.{}` in {} stands in code that no check has reached, so that its struct is not known",
                   workspace.symbol(renaming->target).name, unknown->path);
  for (const auto &[of, spans] : spansOf(workspace, *renaming)) {
    if (of->textOfNames != of->text)
      return refused("{} has syntax errors: names in it cannot be found", of->path);
    if (!keepsReferences(*of, spans, newName))
      return refused("`{}` has another meaning already in {}", newName, of->path);
    for (const Span &span : spans)
      edit.changes[of->uri].push_back({rangeOf(*of->text, span), newName});
  }
  return edit;
}

} // namespace kpkg::lsp
