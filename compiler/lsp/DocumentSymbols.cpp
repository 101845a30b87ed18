// Lists the functions, structs and constants of a source.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Features.h"

namespace kpkg::lsp {

std::vector<llvm::lsp::DocumentSymbol> documentSymbols(Workspace &workspace, const File &file) {
  std::vector<llvm::lsp::DocumentSymbol> found;
  auto add = [&](std::vector<llvm::lsp::DocumentSymbol> &list, const Symbol &symbol, llvm::lsp::SymbolKind kind) {
    auto whole = workspace.current(file, symbol.whole), name = workspace.current(file, symbol.declarations[0]);
    if (!whole || !name || name->begin < whole->begin || name->end > whole->end)
      return false;
    list.emplace_back(symbol.name, kind, rangeOf(*file.text, *whole), rangeOf(*file.text, *name)).detail = symbol.role;
    return true;
  };
  for (const Symbol &symbol : file.names->symbols) {
    if (!symbol.isOfModule())
      continue;
    if (symbol.kind == SymbolKind::Function)
      add(found, symbol, llvm::lsp::SymbolKind::Function);
    else if (symbol.kind == SymbolKind::Constant)
      add(found, symbol, llvm::lsp::SymbolKind::Constant);
    else if (symbol.kind == SymbolKind::Struct && add(found, symbol, llvm::lsp::SymbolKind::Struct)) {
      std::vector<llvm::lsp::DocumentSymbol> &members = found.back().children;
      for (size_t field : symbol.parameters)
        add(members, file.names->symbols[field], llvm::lsp::SymbolKind::Field);
      for (size_t method : symbol.methods)
        add(members, file.names->symbols[method], llvm::lsp::SymbolKind::Method);
    }
  }
  return found;
}

} // namespace kpkg::lsp
