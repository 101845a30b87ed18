// Handles errors of the generated parser: one report per line, in words, then recovery.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "KParser.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/syntax/Layout.h"
#include <memory>
#include <vector>

namespace kpkg::compiler {

/// Inserts missing tokens, so that the rest of a header still reaches its block. Leaves a statement that cannot be
/// finished, and continues the list of statements on the next line.
///
/// Layout guarantees balanced lines and blocks. Rules that end early lack children, for which the tree builder inserts
/// ErrorExpr.
class Recovery final : public antlr4::DefaultErrorStrategy {
public:
  Recovery(const SourceFile &file, const CodePoints &places, const std::vector<bool> &reportedLines,
           DiagnosticEngine &diags)
      : file(file), places(places), reportedLines(reportedLines), diags(diags) {}

  void reportError(antlr4::Parser *parser, const antlr4::RecognitionException &e) override;
  /// Does nothing: the rule's callers continue, and each inserts its missing tokens.
  void recover(antlr4::Parser *parser, std::exception_ptr e) override {}
  antlr4::Token *recoverInline(antlr4::Parser *parser) override;
  /// Called before each decision. In a list of statements, moves to a token that can start a statement.
  void sync(antlr4::Parser *parser) override;

private:
  const SourceFile &file;
  const CodePoints &places;
  const std::vector<bool> &reportedLines;
  DiagnosticEngine &diags;
  size_t silentUntil = 0; // token index up to which the line's errors are suppressed
  std::vector<std::unique_ptr<antlr4::CommonToken>> imagined;

  /// The first decision of the parser at the current token. More tokens could follow there than at the place of the
  /// error, which is after everything optional.
  struct Decision {
    size_t token = SIZE_MAX;
    size_t state = 0;
    antlr4::ParserRuleContext *context = nullptr;
  } decision;

  void report(antlr4::Parser &parser);
  std::vector<size_t> expectedTypes(antlr4::Parser &parser) const;
  /// Returns whether the line of the current token has no error yet, and marks it.
  bool firstOnLine(antlr4::Parser &parser);
  void skipLine(antlr4::Parser &parser);
};

} // namespace kpkg::compiler
