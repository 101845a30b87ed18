// Implements positions of the protocol.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/lsp/Positions.h"
#include "llvm/Support/JSON.h"
#include <algorithm>

using kpkg::compiler::SourceFile;

namespace kpkg::lsp {

Text makeText(std::string path, std::string text) {
  return std::make_shared<SourceFile>(0, std::move(path), std::move(text));
}

/// Returns the UTF-16 units that a byte begins: continuation bytes begin none.
static int unitsAt(char byte) {
  auto value = static_cast<unsigned char>(byte);
  return (value & 0xC0) == 0x80 ? 0 : value >= 0xF0 ? 2 : 1;
}

llvm::lsp::Position positionOf(const SourceFile &text, uint32_t offset) {
  offset = std::min<uint32_t>(offset, text.text().size());
  uint32_t line = text.lineColumn(offset).line;
  int character = 0;
  for (uint32_t at = text.lineStart(line); at < offset; ++at)
    character += unitsAt(text.text()[at]);
  return {static_cast<int>(line) - 1, character};
}

llvm::lsp::Range rangeOf(const SourceFile &text, Span span) {
  return {positionOf(text, span.begin), positionOf(text, span.end)};
}

uint32_t offsetOf(const SourceFile &text, llvm::lsp::Position position) {
  if (position.line < 0)
    return 0;
  if (static_cast<uint32_t>(position.line) >= text.lineCount())
    return text.text().size();
  uint32_t line = static_cast<uint32_t>(position.line) + 1;
  uint32_t at = text.lineStart(line), end = at + static_cast<uint32_t>(text.line(line).size());
  for (int character = 0; at < end; ++at) {
    character += unitsAt(text.text()[at]);
    if (character > position.character)
      break;
  }
  return at;
}

TextMap::TextMap(std::string_view before, std::string_view now) : sizeBefore(before.size()), sizeNow(now.size()) {
  uint32_t shorter = std::min(sizeBefore, sizeNow);
  prefix = std::mismatch(before.begin(), before.begin() + shorter, now.begin()).first - before.begin();
  while (suffix < shorter - prefix && before[sizeBefore - suffix - 1] == now[sizeNow - suffix - 1])
    ++suffix;
}

std::optional<uint32_t> TextMap::toBefore(uint32_t now) const {
  if (now <= prefix)
    return now;
  return now >= sizeNow - suffix ? std::optional(now - sizeNow + sizeBefore) : std::nullopt;
}

std::optional<uint32_t> TextMap::toNow(uint32_t before) const {
  if (before <= prefix)
    return before;
  return before >= sizeBefore - suffix ? std::optional(before - sizeBefore + sizeNow) : std::nullopt;
}

std::optional<Span> TextMap::toNow(Span before) const {
  auto begin = toNow(before.begin), end = toNow(before.end);
  return begin && end && *begin <= *end ? std::optional(Span(*begin, *end)) : std::nullopt;
}

std::string validText(std::string_view text) { return llvm::json::fixUTF8(llvm::StringRef(text.data(), text.size())); }

} // namespace kpkg::lsp
