// Completes names, members, the names of arguments, decorators and hints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/Decorators.h"
#include "compiler/comptime/Fold.h"
#include "compiler/lsp/BuiltinPage.h"
#include "compiler/lsp/Features.h"
#include "compiler/syntax/Keywords.h"
#include "dialect/tile/schedule/Schedule.h"
#include <algorithm>
#include <cctype>

namespace kpkg::lsp {

namespace {

using llvm::lsp::CompletionItem, llvm::lsp::CompletionItemKind, llvm::lsp::CompletionList;

bool isInWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// Returns the word that ends at `end`.
std::string_view wordBefore(std::string_view text, size_t end) {
  size_t begin = end;
  while (begin > 0 && isInWord(text[begin - 1]))
    --begin;
  return text.substr(begin, end - begin);
}

/// An open bracket before the cursor.
struct OpenBracket {
  char kind = 0; ///< '(' or '['; 0 if there is none
  size_t at = 0;
  size_t callee = 0; ///< the end of the callee's name: `f` of `f(` and of `f[T](`
};

/// Returns where the matching bracket opens; npos if it does not.
size_t openingOf(std::string_view text, size_t closing) {
  int depth = 0;
  for (size_t at = closing + 1; at-- > 0;) {
    depth += text[at] == ')' || text[at] == ']';
    depth -= text[at] == '(' || text[at] == '[';
    if (depth == 0)
      return at;
  }
  return std::string_view::npos;
}

OpenBracket openBracketBefore(std::string_view text, size_t offset) {
  constexpr size_t farthest = 4000; // a longer call is not worth the time
  int depth = 0;
  size_t first = offset > farthest ? offset - farthest : 0;
  for (size_t at = offset; at-- > first;) {
    char c = text[at];
    depth += c == ')' || c == ']';
    if (c != '(' && c != '[')
      continue;
    if (--depth >= 0)
      continue;
    OpenBracket found{c, at, at};
    if (c == '(' && at > 0 && text[at - 1] == ']')
      found.callee = std::min(openingOf(text, at - 1), at);
    return found;
  }
  return {};
}

class Completer {
public:
  Completer(Workspace &workspace, const File &file, uint32_t offset)
      : workspace(workspace), file(file), text(file.text->text()), offset(offset) {
    wordBegin = offset - static_cast<uint32_t>(wordBefore(text, offset).size());
    size_t newline = text.substr(0, offset).rfind('\n');
    line = text.substr(newline + 1, offset - newline - 1); // npos + 1 is 0
  }

  CompletionList complete() {
    if (isInComment() || isInNumber())
      return list;
    size_t sign = line.find_first_not_of(" \t");
    if (sign != std::string_view::npos && line[sign] == '@' &&
        std::all_of(line.begin() + sign + 1, line.end(), [](char c) { return isInWord(c) || c == '.'; }))
      addDecorators(std::string(line.substr(sign + 1)));
    else if (wordBegin > 0 && text[wordBegin - 1] == '.')
      addMembers(wordBegin - 1);
    else
      addNamesInScope();
    return list;
  }

private:
  Workspace &workspace;
  const File &file;
  std::string_view text, line;
  uint32_t offset, wordBegin = 0;
  CompletionList list;
  std::set<std::string> seen;

  bool isInComment() const {
    char quote = 0;
    for (char c : line) {
      if (quote ? c == quote : c == '"' || c == '\'')
        quote = quote ? 0 : c;
      else if (c == '#' && !quote)
        return true;
    }
    return quote != 0;
  }
  bool isInNumber() const { return wordBegin < offset && std::isdigit(static_cast<unsigned char>(text[wordBegin])); }

  /// Adds an item, unless a nearer one has its name. Items sort by `rank`, then by name.
  void add(const std::string &name, CompletionItemKind kind, char rank, const std::string &detail = "",
           const std::string &documentation = "") {
    if (!seen.insert(name).second)
      return;
    CompletionItem item(name, kind, rank + name);
    item.detail = validText(detail);
    if (!documentation.empty())
      item.documentation = {llvm::lsp::MarkupKind::Markdown, validText(documentation)};
    list.items.push_back(std::move(item));
  }

  uint32_t beforeEdits() const {
    std::string_view before = file.textOfNames->text();
    auto firstDifference = std::mismatch(before.begin(), before.end(), text.begin(), text.end()).first;
    return TextMap(before, text).toBefore(wordBegin).value_or(firstDifference - before.begin());
  }

  void addSymbol(const File &of, const Symbol &symbol, char rank) {
    CompletionItemKind kind = CompletionItemKind::Variable;
    if (symbol.kind == SymbolKind::Function || symbol.kind == SymbolKind::Imported)
      kind = CompletionItemKind::Function;
    else if (symbol.kind == SymbolKind::Constant || symbol.kind == SymbolKind::ComptimeParameter)
      kind = CompletionItemKind::Constant;
    else if (symbol.kind == SymbolKind::Module)
      kind = CompletionItemKind::Module;
    else if (symbol.kind == SymbolKind::Struct)
      kind = CompletionItemKind::Struct;
    else if (symbol.kind == SymbolKind::Field)
      kind = CompletionItemKind::Field;
    const Types::Entry *types = workspace.typesOf(of, symbol.declarations[0]);
    std::string detail = symbol.text;
    if (detail.empty() && types)
      detail = types->types[0].text + (types->types.size() > 1 || types->hasMore ? " | ..." : "");
    add(symbol.name, kind, rank, detail, symbol.doc);
  }

  void addDecorators(const std::string &typed) {
    size_t dot = typed.rfind('.');
    std::string before = dot == std::string::npos ? "" : typed.substr(0, dot + 1);
    for (std::string_view name : compiler::decoratorNames)
      if (name.starts_with(before)) // an editor replaces the word behind the dot
        add(std::string(name.substr(before.size())), CompletionItemKind::Keyword, 'a', "@" + std::string(name));
  }

  /// Returns the type of an expression that ends at `end`; null if it is not known.
  const TypeAt *typeOfExpression(uint32_t end) {
    if (file.types) {
      TextMap map(file.types->text()->text(), text);
      auto before = map.toBefore(end);
      const Types::Entry *shortest = nullptr; // `a + b.` is a member of b
      for (const Types::Entry &entry : file.types->entries())
        if (before && entry.span.end == *before)
          shortest = &entry;
      if (shortest)
        return &shortest->types[0];
    }
    std::string_view name = wordBefore(text, end);
    bool isName = !name.empty() && (name.size() == end || text[end - name.size() - 1] != '.');
    const TypeAt *found = nullptr;
    if (!isName)
      return found;
    for (size_t symbol : file.names->visibleAt(beforeEdits()))
      if (file.names->symbols[symbol].name == name)
        if (auto *types = workspace.typesOf(file, file.names->symbols[symbol].declarations[0]))
          found = &types->types[0];
    return found;
  }

  void addStructMembers(const TypeAt &type) {
    const File *of = workspace.file(type.structPath);
    if (!of || !of->names->ofModule.contains(type.structName))
      return;
    const Symbol &declared = of->names->symbols[of->names->ofModule.at(type.structName)];
    for (const auto *list : {&declared.parameters, &declared.comptimeParameters, &declared.methods})
      for (size_t member : *list)
        addSymbol(*of, of->names->symbols[member], list == &declared.methods ? 'b' : 'a');
  }

  /// Adds the members of the expression before the dot.
  void addMembers(uint32_t dot) {
    std::string base(wordBefore(text, dot));
    auto symbol = file.names->ofModule.find(base);
    if (symbol != file.names->ofModule.end() && file.names->symbols[symbol->second].kind == SymbolKind::Module) {
      if (File *module = workspace.moduleOf(file, file.names->symbols[symbol->second].module))
        for (const auto &[name, member] : module->names->ofModule)
          addSymbol(*module, module->names->symbols[member], 'a');
      return;
    }
    if (base == "block_idx" || base == "grid_dim" || base == "thread_idx" || base == "block_dim" ||
        base == "global_idx") {
      for (const char *axis : {"x", "y", "z"})
        add(axis, CompletionItemKind::Field, 'a');
      return;
    }
    if (base == "target")
      return add("has", CompletionItemKind::Method, 'a', "", builtinDocumentation(".has"));
    const TypeAt *type = typeOfExpression(dot);
    if (type && !type->structName.empty())
      return addStructMembers(*type);
    std::string members = type ? type->members : "";
    for (const std::string &name : attributesOf(members))
      add(name, CompletionItemKind::Field, 'a', members, builtinDocumentation("." + name));
    for (const std::string &name : methodsOf(members))
      add(name, CompletionItemKind::Method, 'b', members, builtinDocumentation("." + name));
  }

  /// Adds the names of the arguments of the call, or the hints of the decorator, that the cursor is in.
  void addArguments() {
    OpenBracket bracket = openBracketBefore(text, wordBegin);
    if (!bracket.kind)
      return;
    std::string callee(wordBefore(text, bracket.callee));
    size_t begin = bracket.callee - callee.size();
    if (begin > 0 && text[begin - 1] == '@' && callee == "schedule") {
      for (const tile::HintRecord &hint : tile::kHints)
        add(std::string(hint.name) + "=", CompletionItemKind::Property, 'a', "", std::string(hint.meaning));
      return;
    }
    if (begin > 0 && text[begin - 1] == '@' && callee == "kernel") {
      for (const char *argument : {"level=", "threads=", "cluster="})
        add(argument, CompletionItemKind::Property, 'a', "", builtinDocumentation("kernel"));
      return;
    }
    auto symbol = file.names->ofModule.find(callee);
    auto target = symbol == file.names->ofModule.end() ? std::nullopt : workspace.targetOf(file, symbol->second);
    const File *of = target ? workspace.file(target->path) : nullptr;
    if (!of && bracket.kind == '(') {
      std::string name = (begin > 0 && text[begin - 1] == '.' ? "." : "") + callee;
      for (const std::string &argument : builtinArguments(name))
        add(argument + "=", CompletionItemKind::Property, 'a', "", builtinDocumentation(name));
    }
    if (!of)
      return;
    const Symbol &function = of->names->symbols[target->symbol];
    for (size_t parameter : bracket.kind == '[' ? function.comptimeParameters : function.parameters) {
      const Symbol &one = of->names->symbols[parameter];
      add(one.name + "=", CompletionItemKind::Property, 'a', one.text);
    }
    if (function.role == "kernel" && bracket.kind == '(')
      add("grid=", CompletionItemKind::Property, 'a');
  }

  void addNamesInScope() {
    addArguments();
    std::vector<size_t> visible = file.names->visibleAt(beforeEdits());
    for (auto symbol = visible.rbegin(); symbol != visible.rend(); ++symbol)
      addSymbol(file, file.names->symbols[*symbol], file.names->symbols[*symbol].isOfModule() ? 'c' : 'b');
    File &prelude = workspace.prelude();
    for (const auto &[name, symbol] : prelude.names->ofModule)
      addSymbol(prelude, prelude.names->symbols[symbol], 'd');
    for (const std::string &name : builtinFunctions())
      add(name, CompletionItemKind::Function, 'd', "", builtinDocumentation(name));
    for (const std::string &name : builtinTypes())
      add(name, CompletionItemKind::Class, 'd', "", builtinDocumentation(name));
    for (const std::string &name : compiler::builtinConstantNames())
      add(name, CompletionItemKind::Constant, 'e');
    for (const std::string &name : compiler::keywords())
      add(name, CompletionItemKind::Keyword, 'f', "", builtinDocumentation(name));
  }
};

} // namespace

CompletionList completionAt(Workspace &workspace, const File &file, uint32_t offset) {
  return Completer(workspace, file, offset).complete();
}

} // namespace kpkg::lsp
