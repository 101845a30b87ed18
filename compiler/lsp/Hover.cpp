// Answers hovers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/BuiltinPage.h"
#include "compiler/lsp/Features.h"
#include <fmt/format.h>

namespace kpkg::lsp {

namespace {

std::string code(const std::string &text) { return "```kpkg\n" + text + "\n```\n"; }

/// Describes the types of an expression in its instances: "`Tile[float32, 64, 64]`: 64 x 64 elements of ...".
std::string typeLines(const Types::Entry &entry) {
  std::string lines;
  for (const TypeAt &type : entry.types)
    lines += fmt::format("\n* `{}`{}", type.text, type.memory.empty() ? "" : ": " + type.memory);
  return lines + (entry.hasMore ? "\n* and others, in other instances" : "") + "\n";
}

/// Describes how GPU code holds a tile: "`Tile[float32, 64, 64]` on sm_90a, ...".
std::string layoutLines(llvm::ArrayRef<LayoutAt> layouts) {
  std::string lines;
  for (const LayoutAt &layout : layouts)
    lines += fmt::format("\n* `{}` {}", layout.type, layout.text);
  return lines.empty() ? "" : lines + "\n";
}

std::string wordFor(const Symbol &symbol) {
  switch (symbol.kind) {
  case SymbolKind::Constant:
    return "comptime ";
  case SymbolKind::Variable:
    return "var ";
  case SymbolKind::LoopVariable:
    return "for ";
  case SymbolKind::Module:
    return "import ";
  default:
    return "";
  }
}

std::string declaration(const Symbol &symbol, const Types::Entry *types) {
  if (symbol.kind == SymbolKind::Function || symbol.kind == SymbolKind::Struct) {
    std::string decorator = symbol.role.empty() ? "" : "@" + symbol.role + "\n";
    return code(decorator + symbol.text) + (symbol.doc.empty() ? "" : "\n" + symbol.doc + "\n");
  }
  std::string text = symbol.text.empty() ? wordFor(symbol) + symbol.name : symbol.text;
  bool isOneType = types && types->types.size() == 1 && symbol.text.empty();
  if (isOneType) // as the author would have written it
    text += (types->types[0].text.starts_with("=") ? " " : ": ") + types->types[0].text;
  std::string found = code(text);
  if (types && (!isOneType || !types->types[0].memory.empty()))
    found += typeLines(*types);
  return found;
}

/// Returns the layouts of the value that a variable receives here, else where it is declared, else elsewhere.
llvm::ArrayRef<LayoutAt> layoutsOfVariable(const Workspace &workspace, const File &file, const Use &here) {
  llvm::ArrayRef<LayoutAt> found = workspace.layoutsAt(file, here.span.begin);
  for (const Use &use : file.names->uses)
    if (found.empty() && use.symbol == here.symbol && (use.kind == Use::Declaration || use.kind == Use::Reference))
      found = workspace.layoutsAt(file, use.span.begin);
  return found;
}

} // namespace

std::optional<llvm::lsp::Hover> hoverAt(Workspace &workspace, const File &file, uint32_t offset) {
  const Use *use = workspace.useAt(file, offset);
  if (!use)
    return std::nullopt;
  std::string text;
  if (auto target = workspace.targetOf(file, *use)) {
    const File &of = *workspace.file(target->path);
    const Symbol &symbol = of.names->symbols[target->symbol];
    const Types::Entry *types = nullptr;
    for (const Span &span : symbol.declarations)
      types = types ? types : workspace.typesOf(of, span);
    text = declaration(symbol, types);
    Span whole = use->kind == Use::Attribute ? Span{use->base.begin, use->span.end} : use->span;
    const Types::Entry *here = workspace.typesOf(file, whole);
    bool isKnownBetter = here && (!types || here->types != types->types);
    if (isKnownBetter && symbol.kind != SymbolKind::Function && symbol.kind != SymbolKind::Struct)
      text += "\nhere" + typeLines(*here);
    if (symbol.kind == SymbolKind::Variable && of.path == file.path)
      text += layoutLines(layoutsOfVariable(workspace, file, *use));
    if (symbol.kind == SymbolKind::Module)
      if (File *module = workspace.moduleOf(of, symbol.module))
        text += "\n" + module->names->doc + "\n";
  } else if (use->kind == Use::ModuleFile) {
    if (File *module = workspace.moduleOf(file, file.names->symbols[use->symbol].module))
      text = code("import " + use->name) + "\n" + module->names->doc + "\n";
  } else {
    const Types::Entry *types = workspace.typesOf(file, use->span);
    if (use->kind == Use::Attribute) // the checker types the whole `base.name`
      types = workspace.typesOf(file, {use->base.begin, use->span.end});
    std::string name = (use->kind == Use::Attribute ? "." : "") + use->name;
    std::string documentation = builtinDocumentation(name);
    if (types || !documentation.empty())
      text = code(name) + (types ? typeLines(*types) : "") + "\n" + documentation + "\n";
  }
  auto span = workspace.current(file, use->span);
  if (text.empty() || !span)
    return std::nullopt;
  llvm::lsp::Hover hover(rangeOf(*file.text, *span));
  hover.contents.value = validText(text);
  return hover;
}

} // namespace kpkg::lsp
