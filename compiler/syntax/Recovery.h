// What the generated parser does at a wrong token: report once per line, in words, and go on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "KParser.h"
#include "compiler/diag/Diagnostics.h"
#include "compiler/syntax/Layout.h"
#include <memory>
#include <vector>

namespace kpkg::compiler {

/// Strategy: a token that is missing is imagined, so that the rest of a header still reaches its block; a statement
/// that cannot be finished is left, and the list of statements goes on at the next line. Layout guarantees that lines
/// and blocks are balanced. Rules that end early leave children out: the tree builder puts ErrorExpr there.
class Recovery final : public antlr4::DefaultErrorStrategy {
public:
  Recovery(const SourceFile &file, const CodePoints &places, const std::vector<bool> &reportedLines,
           DiagnosticEngine &diags)
      : file(file), places(places), reportedLines(reportedLines), diags(diags) {}

  void reportError(antlr4::Parser *parser, const antlr4::RecognitionException &e) override;
  /// Nothing: the callers of the rule go on, each imagining what it misses.
  void recover(antlr4::Parser *parser, std::exception_ptr e) override {}
  antlr4::Token *recoverInline(antlr4::Parser *parser) override;
  /// Called before each decision. In a list of statements, moves to something that starts a statement.
  void sync(antlr4::Parser *parser) override;

private:
  const SourceFile &file;
  const CodePoints &places;
  const std::vector<bool> &reportedLines;
  DiagnosticEngine &diags;
  size_t silentUntil = 0; // token index: the line up to there has its error
  std::vector<std::unique_ptr<antlr4::CommonToken>> imagined;

  /// The first decision that the parser took at the current token: what could follow there is more than what could at
  /// the place where it got stuck, after it had passed over everything optional.
  struct Decision {
    size_t token = SIZE_MAX;
    size_t state = 0;
    antlr4::ParserRuleContext *context = nullptr;
  } decision;

  void report(antlr4::Parser &parser);
  std::vector<size_t> expectedTypes(antlr4::Parser &parser) const;
  /// False when the line of the current token has an error already; afterwards it has.
  bool firstOnLine(antlr4::Parser &parser);
  void skipLine(antlr4::Parser &parser);
};

} // namespace kpkg::compiler
