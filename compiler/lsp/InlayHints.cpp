// Shows the types of variables that are declared without one, and which hints of `@schedule` GPU code does not follow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Features.h"

namespace kpkg::lsp {

namespace {

bool isIn(llvm::lsp::Position position, llvm::lsp::Range range) {
  return !(position < range.start) && !(range.end < position);
}

/// Returns the name of a hint in the decorators of a kernel; null if it is not there.
const Use *useOfHint(const Names &names, const DroppedHint &dropped) {
  auto kernel = names.ofModule.find(dropped.kernel);
  if (kernel == names.ofModule.end())
    return nullptr;
  const Symbol &symbol = names.symbols[kernel->second];
  Span decorators(symbol.whole.begin, symbol.declarations[0].begin);
  auto found = std::ranges::find_if(names.uses, [&](const Use &use) {
    return use.kind == Use::Other && use.name == dropped.hint && decorators.touches(use.span.begin);
  });
  return found == names.uses.end() ? nullptr : &*found;
}

void addDropped(Workspace &workspace, const File &file, llvm::lsp::Range range,
                std::vector<llvm::lsp::InlayHint> &hints) {
  if (!file.types)
    return;
  for (const DroppedHint &dropped : file.types->gpu().dropped) {
    const Use *use = useOfHint(*file.names, dropped);
    auto span = use ? workspace.current(file, use->span) : std::nullopt;
    if (!span)
      continue;
    llvm::lsp::Position position = positionOf(*file.text, span->begin);
    if (!isIn(position, range))
      continue;
    llvm::lsp::InlayHint hint(llvm::lsp::InlayHintKind::Parameter, position);
    hint.label = validText("dropped, since " + dropped.why + ": ");
    hint.paddingRight = true;
    hints.push_back(std::move(hint));
  }
}

} // namespace

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
    if (!isIn(position, range))
      continue;
    llvm::lsp::InlayHint hint(llvm::lsp::InlayHintKind::Type, position);
    bool isOne = types->types.size() == 1 && !types->hasMore;
    hint.label = validText(": " + types->types[0].text + (isOne ? "" : " | ..."));
    hints.push_back(std::move(hint));
  }
  addDropped(workspace, file, range, hints);
  return hints;
}

} // namespace kpkg::lsp
