// Lists the functions and constants of a source.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Features.h"

namespace kpkg::lsp {

std::vector<llvm::lsp::DocumentSymbol> documentSymbols(Workspace &workspace, const File &file) {
  std::vector<llvm::lsp::DocumentSymbol> found;
  for (const Symbol &symbol : file.names->symbols) {
    bool isFunction = symbol.kind == SymbolKind::Function;
    if (!symbol.isOfModule() || (!isFunction && symbol.kind != SymbolKind::Constant))
      continue;
    auto whole = workspace.current(file, symbol.whole), name = workspace.current(file, symbol.declarations[0]);
    if (!whole || !name || name->begin < whole->begin || name->end > whole->end)
      continue;
    auto &one =
        found.emplace_back(symbol.name, isFunction ? llvm::lsp::SymbolKind::Function : llvm::lsp::SymbolKind::Constant,
                           rangeOf(*file.text, *whole), rangeOf(*file.text, *name));
    one.detail = symbol.role;
  }
  return found;
}

} // namespace kpkg::lsp
