// Declares the layer between lexer and grammar: indentation, brackets, and words that .k does not have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "KLexer.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/source/Source.h"
#include <memory>
#include <vector>

namespace kpkg::compiler {

/// Converts ANTLR's code points to the byte offsets of sources.
class CodePoints {
public:
  explicit CodePoints(const SourceFile &file);
  /// Returns the bytes of a token.
  SourceRange range(const antlr4::Token &token) const;
  /// Returns the byte offset of a code point.
  uint32_t byteOffset(size_t codePoint) const;
  /// Returns the file's text without a byte order mark.
  std::string_view text() const { return contents; }

private:
  uint32_t file, start;
  std::string_view contents;
  std::vector<uint32_t> offsets; // empty: the text is ASCII
};

/// The tokens for the grammar. For any source, brackets are balanced, and so are INDENT and DEDENT. Every line ends
/// with NEWLINE, and an INDENT follows every line that opens a block.
struct TokenLines {
  std::vector<std::unique_ptr<antlr4::Token>> tokens; // ends with EOF
  /// For each token, whether its line had an error already, so that the parser reports nothing more. As long as
  /// `tokens`.
  std::vector<bool> reported;
  /// A limit was exceeded: do not parse.
  bool abandoned = false;
};

TokenLines layOut(grammar::KLexer &lexer, const SourceFile &file, const CodePoints &places, DiagnosticEngine &diags);

} // namespace kpkg::compiler
