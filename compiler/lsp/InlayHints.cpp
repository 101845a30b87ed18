// Shows the types of variables that are declared without one.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Features.h"

namespace kpkg::lsp {

std::vector<llvm::lsp::InlayHint> inlayHints(Workspace &workspace, const File &file, llvm::lsp::Range range) {
  std::vector<llvm::lsp::InlayHint> hints;
  for (const Symbol &symbol : file.names->symbols) {
    if (!symbol.isInferred)
      continue;
    const Types::Entry *types = workspace.typesOf(file, symbol.declarations[0]);
    auto span = workspace.current(file, symbol.declarations[0]);
    if (!types || !span)
      continue;
    llvm::lsp::Position position = positionOf(*file.text, span->end);
    if (position < range.start || range.end < position)
      continue;
    llvm::lsp::InlayHint hint(llvm::lsp::InlayHintKind::Type, position);
    bool isOne = types->types.size() == 1 && !types->hasMore;
    hint.label = validText(": " + types->types[0].text + (isOne ? "" : " | ..."));
    hints.push_back(std::move(hint));
  }
  return hints;
}

} // namespace kpkg::lsp
