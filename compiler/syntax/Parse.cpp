// Runs the parser's stages: text, tokens, lines and blocks, parse tree, syntax tree.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Parse.h"
#include "KLexer.h"
#include "KParser.h"
#include "compiler/syntax/Builder.h"
#include "compiler/syntax/Layout.h"
#include "compiler/syntax/Limits.h"
#include "compiler/syntax/Recovery.h"

using namespace kpkg::compiler;

namespace {
/// Returns the offset of the first byte that is not UTF-8, or the size of the text if all of it is valid.
size_t findInvalidUtf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    unsigned char first = text[at];
    if (first < 0x80) {
      ++at;
      continue;
    }
    size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                    : (first & 0xF0) == 0xE0         ? 3
                    : first >= 0xF0 && first <= 0xF4 ? 4
                                                     : 0;
    if (length == 0 || at + length > text.size())
      return at;
    for (size_t i = 1; i < length; ++i)
      if ((text[at + i] & 0xC0) != 0x80)
        return at;
    unsigned char second = text[at + 1];
    bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    bool surrogate = first == 0xED && second >= 0xA0, tooLarge = first == 0xF4 && second >= 0x90;
    if (overlong || surrogate || tooLarge)
      return at;
    at += length;
  }
  return at;
}
} // namespace

std::unique_ptr<ast::Module> kpkg::compiler::parse(const SourceFile &file, DiagnosticEngine &diags) {
  auto module = std::make_unique<ast::Module>();
  module->file = file.id();
  std::string_view text = file.text();
  if (text.size() > limits::fileBytes) {
    diags.report(diag::FileTooLarge, file.wholeRange().atBegin(), text.size(), limits::fileBytes);
    return module;
  }
  if (size_t at = findInvalidUtf8(text); at < text.size()) {
    uint32_t begin = at;
    diags.report(diag::InvalidUtf8, {file.id(), begin, begin + 1}, static_cast<unsigned char>(text[at]));
    return module;
  }

  size_t firstReport = diags.diagnostics().size();
  CodePoints places(file);
  antlr4::ANTLRInputStream characters{std::string(places.text())};
  grammar::KLexer lexer(&characters);
  lexer.removeErrorListeners();
  TokenLines lines = layOut(lexer, file, places, diags);
  if (!lines.abandoned) {
    antlr4::ListTokenSource source(std::move(lines.tokens));
    antlr4::CommonTokenStream tokens(&source);
    tokens.fill(); // recovery looks ahead to the end of the line
    grammar::KParser parser(&tokens);
    parser.removeErrorListeners();
    parser.setErrorHandler(std::make_shared<Recovery>(file, places, lines.reported, diags));
    *module = Builder(file, places, diags).module(*parser.module());
  }
  // Sorts the reports of characters, grammar and tree, because people read from top to bottom.
  diags.sortByPlace(firstReport);
  return module;
}
