// Converts between bytes of a source and positions of the protocol, which count UTF-16 units.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/source/Source.h"
#include "llvm/Support/LSP/Protocol.h"
#include <memory>
#include <optional>

namespace kpkg::lsp {

/// One version of a text. Versions are compared by pointer.
using Text = std::shared_ptr<const compiler::SourceFile>;
Text makeText(std::string path, std::string text);

/// A half-open range of bytes of one file.
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
  Span() = default;
  Span(uint32_t begin, uint32_t end) : begin(begin), end(end) {}
  Span(compiler::SourceRange range) : begin(range.begin), end(range.end) {}
  /// Returns whether a cursor before, in or behind the span is at it.
  bool touches(uint32_t at) const { return begin <= at && at <= end; }
  auto operator<=>(const Span &) const = default;
};

llvm::lsp::Position positionOf(const compiler::SourceFile &text, uint32_t offset);
llvm::lsp::Range rangeOf(const compiler::SourceFile &text, Span span);
/// Returns the byte of a position. Positions behind the end of a line or of the text mean that end.
uint32_t offsetOf(const compiler::SourceFile &text, llvm::lsp::Position position);

/// Maps offsets between two versions of a text, whose common beginning and end keep their places.
class TextMap {
public:
  TextMap(std::string_view before, std::string_view now);
  /// Return the offset in the other version; nothing within the part that differs.
  std::optional<uint32_t> toBefore(uint32_t now) const;
  std::optional<uint32_t> toNow(uint32_t before) const;
  std::optional<Span> toNow(Span before) const;

private:
  uint32_t prefix = 0, suffix = 0, sizeBefore = 0, sizeNow = 0;
};

/// Returns text that JSON can hold.
std::string validText(std::string_view text);

} // namespace kpkg::lsp
