// The layer between characters and grammar: indentation, brackets, and words that .k does not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "KLexer.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/source/Source.h"
#include <memory>
#include <vector>

namespace kpkg::compiler {

/// ANTLR counts code points; sources count bytes.
class CodePoints {
public:
  explicit CodePoints(const SourceFile &file);
  /// The bytes that a token covers.
  SourceRange range(const antlr4::Token &token) const;
  /// The byte offset of a code point.
  uint32_t byteOffset(size_t codePoint) const;
  /// The file's text without a byte order mark.
  std::string_view text() const { return contents; }

private:
  uint32_t file, start;
  std::string_view contents;
  std::vector<uint32_t> offsets; // empty: the text is ASCII
};

/// What the grammar reads. Brackets are balanced, INDENT and DEDENT too, every line ends with NEWLINE, and every line
/// that opens a block is followed by an INDENT, whatever the source looked like.
struct TokenLines {
  std::vector<std::unique_ptr<antlr4::Token>> tokens; // ends with EOF
  /// By token: its line had an error already, so that the parser says no more about it. As long as `tokens`.
  std::vector<bool> reported;
  /// A limit was exceeded: do not parse.
  bool abandoned = false;
};

TokenLines layOut(grammar::KLexer &lexer, const SourceFile &file, const CodePoints &places, DiagnosticEngine &diags);

} // namespace kpkg::compiler
