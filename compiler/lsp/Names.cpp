// Answers what stands at a place of one source.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Names.h"
#include <algorithm>

namespace kpkg::lsp {

const Use *Names::useAt(uint32_t offset) const {
  auto after = std::upper_bound(uses.begin(), uses.end(), offset,
                                [](uint32_t at, const Use &use) { return at < use.span.begin; });
  if (after == uses.begin())
    return nullptr;
  const Use &use = *std::prev(after);
  return use.span.touches(offset) ? &use : nullptr;
}

size_t Names::functionAt(uint32_t offset) const {
  size_t found = noSymbol;
  uint32_t last = 0;
  for (size_t i = 0; i < symbols.size(); ++i) {
    const Symbol &symbol = symbols[i];
    if (!symbol.isOfModule() || symbol.whole.begin > offset || symbol.whole.begin < last)
      continue;
    last = symbol.whole.begin;
    found = symbol.kind == SymbolKind::Function || symbol.kind == SymbolKind::Struct ? i : noSymbol;
  }
  if (found == noSymbol || symbols[found].kind == SymbolKind::Function)
    return found;
  size_t method = noSymbol;
  for (size_t one : symbols[found].methods)
    if (symbols[one].whole.begin <= offset)
      method = one;
  return method;
}

std::vector<size_t> Names::visibleAt(uint32_t offset) const {
  std::vector<size_t> visible;
  for (const auto &[name, symbol] : ofModule)
    visible.push_back(symbol);
  size_t function = functionAt(offset);
  for (size_t i = 0; i < symbols.size() && function != noSymbol; ++i)
    if (symbols[i].function == function && symbols[i].declarations[0].end < offset)
      visible.push_back(i);
  return visible;
}

} // namespace kpkg::lsp
