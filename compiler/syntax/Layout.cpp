// Converts the lexer's tokens to lines and blocks: INDENT, DEDENT, NEWLINE, balanced brackets. Repairs reported errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Layout.h"
#include "compiler/syntax/Limits.h"
#include "compiler/syntax/Wording.h"
#include <algorithm>
#include <utility>

using namespace kpkg::compiler;
using grammar::KLexer;

CodePoints::CodePoints(const SourceFile &source) : file(source.id()), start(0), contents(source.text()) {
  if (contents.starts_with("\xEF\xBB\xBF")) {
    start = 3;
    contents.remove_prefix(3);
  }
  if (std::all_of(contents.begin(), contents.end(), [](unsigned char c) { return c < 0x80; }))
    return;
  for (size_t i = 0; i < contents.size(); ++i)
    if ((static_cast<unsigned char>(contents[i]) & 0xC0) != 0x80)
      offsets.push_back(start + i);
}

uint32_t CodePoints::byteOffset(size_t codePoint) const {
  uint32_t end = start + contents.size();
  if (offsets.empty())
    return std::min<size_t>(start + codePoint, end);
  return codePoint < offsets.size() ? offsets[codePoint] : end;
}

SourceRange CodePoints::range(const antlr4::Token &token) const {
  // A token without characters ends before it starts.
  uint32_t begin = byteOffset(token.getStartIndex());
  return {file, begin, std::max(begin, byteOffset(token.getStopIndex() + 1))};
}

namespace {
bool startsStatement(size_t type) {
  switch (type) {
  case KLexer::FN:
  case KLexer::DEF:
  case KLexer::STRUCT:
  case KLexer::VAR:
  case KLexer::RETURN:
  case KLexer::WHILE:
  case KLexer::FOR:
  case KLexer::IMPORT:
  case KLexer::FROM:
  case KLexer::LAUNCH:
  case KLexer::RAISE:
  case KLexer::BREAK:
  case KLexer::CONTINUE:
  case KLexer::PASS:
  case KLexer::COMPTIME:
  case KLexer::AT:
    return true;
  default:
    return false;
  }
}

/// Returns whether a token deepens an expression's tree: operators, `.`, and keywords that are operators.
bool deepensExpression(size_t type) {
  return (type >= KLexer::PLUS && type <= KLexer::GREATER_EQUAL) || type == KLexer::DOT || type == KLexer::AND ||
         type == KLexer::OR || type == KLexer::NOT || type == KLexer::IN || type == KLexer::IS || type == KLexer::IF;
}

class Layout {
public:
  Layout(KLexer &lexer, const SourceFile &file, const CodePoints &places, DiagnosticEngine &diags)
      : lexer(lexer), file(file), places(places), diags(diags) {}

  TokenLines run() {
    bool physicalLineStart = true;
    while (!lines.abandoned) {
      // Blanks would be half of all tokens, and skipping a token costs the lexer as much as creating one.
      for (antlr4::CharStream *characters = lexer.getInputStream(); characters->LA(1) == ' ';)
        characters->consume();
      std::unique_ptr<antlr4::Token> token = lexer.nextToken();
      size_t type = token->getType();
      if (type == antlr4::Token::EOF)
        break;
      if (type == KLexer::NEWLINE) {
        if (brackets.empty() && !std::exchange(joinsNextLine, false))
          endLine();
        physicalLineStart = true;
        continue;
      }
      if (physicalLineStart && startsStatement(type) && !brackets.empty()) {
        reportUnclosed();
        endLine();
      }
      physicalLineStart = false;
      if (!inLine)
        startLine(*token);
      accept(std::move(token));
      if (lines.tokens.size() > limits::tokens)
        abandon(diags.report(diag::TooManyTokens, lastRange, limits::tokens));
    }
    finish();
    return std::move(lines);
  }

private:
  struct Bracket {
    size_t closer;
    SourceRange range;
    unsigned operators = 0; // since the last comma
  };
  struct Level {
    unsigned width;
    bool phantom;       // indented by mistake: the grammar does not see it
    unsigned tolerated; // a smaller indentation that was reported once and counts as this level
  };

  KLexer &lexer;
  const SourceFile &file;
  const CodePoints &places;
  DiagnosticEngine &diags;
  TokenLines lines;
  std::vector<Bracket> brackets;
  std::vector<Level> levels{{0, false, 0}};
  unsigned lineOperators = 0; // outside brackets, since the last comma
  unsigned expressionDepth = 0;
  bool inLine = false;
  bool lineReported = false;
  bool lineHasInvalid = false;
  bool joinsNextLine = false; // a `\` that is not exactly at the end of its line
  size_t lineBegin = 0;       // index of its first token
  bool lineIsHeader = false, lineIsSignature = false, lineIsComptime = false, lineHasColon = false;
  size_t lastType = 0;
  SourceRange lastRange;
  size_t lastStop = 0; // code point after the last token
  SourceRange headerRange;
  enum class Opens { No, Block, SilentBlock } opens = Opens::No;
  bool tabReported = false;

  void emit(std::unique_ptr<antlr4::Token> token) { lines.tokens.push_back(std::move(token)); }
  void emit(size_t type) {
    auto token = std::make_unique<antlr4::CommonToken>(type, "");
    token->setStartIndex(lastStop);
    token->setStopIndex(lastStop - 1);
    emit(std::move(token));
  }
  void abandon(DiagnosticBuilder &) { lines.abandoned = true; }
  void abandon(DiagnosticBuilder &&) { lines.abandoned = true; }

  void endLine() {
    if (!inLine)
      return;
    emit(KLexer::NEWLINE);
    lines.reported.resize(lines.tokens.size(), lineReported);
    // A line opens a block if it ends with `:`, or if it should: the parser then reports only the missing colon.
    bool missesColon = lineIsHeader && !lineHasColon;
    opens = lastType == KLexer::COLON ? (lineIsHeader ? Opens::Block : Opens::SilentBlock)
            : missesColon             ? Opens::SilentBlock
                                      : Opens::No;
    headerRange = lastRange;
    inLine = false;
  }

  void startLine(const antlr4::Token &token) {
    indent(token);
    lines.reported.resize(lines.tokens.size(), false);
    inLine = true;
    lineReported = lineHasInvalid = joinsNextLine = false;
    lineBegin = lines.tokens.size();
    lineIsHeader = lineIsSignature = lineIsComptime = lineHasColon = false;
    lineOperators = expressionDepth = 0;
  }

  void indent(const antlr4::Token &token) {
    uint32_t at = places.byteOffset(token.getStartIndex());
    uint32_t begin = at;
    std::string_view text = file.text();
    while (begin > 0 && (text[begin - 1] == ' ' || text[begin - 1] == '\t' || text[begin - 1] == '\f'))
      --begin;
    unsigned width = 0;
    for (uint32_t i = begin; i < at; ++i)
      width = text[i] == '\t' ? (width / 8 + 1) * 8 : text[i] == '\f' ? 0 : width + 1;
    SourceRange blank{file.id(), begin, at};
    bool hasTab = text.substr(begin, at - begin).find('\t') != std::string_view::npos;
    bool isUnexpected = width > levels.back().width && opens == Opens::No;
    if (!tabReported && hasTab) {
      diags.report(diag::TabInIndentation, blank)
          .fix(blank, std::string(isUnexpected ? levels.back().width : width, ' '));
      tabReported = true;
    }
    if (width > levels.back().width) {
      bool phantom = isUnexpected;
      if (phantom && !hasTab) // the intended width of a tab is unknown
        diags.report(diag::UnexpectedIndent, blank, width, levels.back().width);
      else if (!phantom)
        emit(KLexer::INDENT);
      levels.push_back({width, phantom, width});
      if (levels.size() > limits::blocks)
        abandon(diags.report(diag::NestingTooDeep, blank, "blocks", limits::blocks));
      return;
    }
    closeEmptyBlock();
    // An indentation between two levels counts as the inner one. Ending its block would cause further errors.
    while (width <= levels[levels.size() - (levels.size() > 1 ? 2 : 1)].width && width < levels.back().width)
      dedent();
    if (width < levels.back().width && width != levels.back().tolerated) {
      diags.report(diag::InconsistentDedent, blank, width);
      levels.back().tolerated = width;
    }
  }

  void closeEmptyBlock() {
    if (opens == Opens::No)
      return;
    if (opens == Opens::Block)
      diags.report(diag::ExpectedIndentedBlock, headerRange);
    emit(KLexer::INDENT);
    emit(KLexer::DEDENT);
    opens = Opens::No;
  }

  void dedent() {
    if (!levels.back().phantom)
      emit(KLexer::DEDENT);
    levels.pop_back();
  }

  void accept(std::unique_ptr<antlr4::Token> token) {
    auto *common = static_cast<antlr4::CommonToken *>(token.get());
    size_t type = common->getType();
    SourceRange range = places.range(*common);
    joinsNextLine = false;
    bool isFirst = lines.tokens.size() == lineBegin;
    if (isFirst || (lineIsComptime && lines.tokens.size() == lineBegin + 1)) {
      lineIsSignature = type == KLexer::FN || type == KLexer::DEF;
      lineIsHeader = lineIsSignature || type == KLexer::STRUCT || type == KLexer::IF || type == KLexer::ELIF ||
                     type == KLexer::ELSE || type == KLexer::FOR || type == KLexer::WHILE;
      lineIsComptime = type == KLexer::COMPTIME;
    }
    bool isLostEllipsis = type == KLexer::ELLIPSIS && (brackets.empty() || brackets.back().closer != KLexer::RBRACKET);
    if (type == KLexer::RESERVED || type == KLexer::FOREIGN || type == KLexer::INVALID || isLostEllipsis) {
      lineReported = true;
      type = replaceForeign(type, range);
      if (type == 0)
        return;
      common->setType(type);
    }
    bool isBehindSignature = lineIsSignature && brackets.empty() && lines.tokens.size() > lineBegin + 2;
    if (type == KLexer::NAME && isBehindSignature && file.slice(range) == "where")
      common->setType(KLexer::WHERE);
    switch (type) {
    case KLexer::LPAREN:
      open(KLexer::RPAREN, range);
      break;
    case KLexer::LBRACKET:
      open(KLexer::RBRACKET, range);
      break;
    case KLexer::LBRACE:
      open(KLexer::RBRACE, range);
      break;
    case KLexer::RPAREN:
    case KLexer::RBRACKET:
    case KLexer::RBRACE:
      if (!close(*common, range))
        return;
      break;
    case KLexer::COMMA: {
      unsigned &operators = brackets.empty() ? lineOperators : brackets.back().operators;
      expressionDepth -= operators;
      operators = 0;
      break;
    }
    case KLexer::COLON:
      lineHasColon |= brackets.empty();
      break;
    default:
      if (deepensExpression(type))
        deepen(range);
    }
    lastType = common->getType();
    lastRange = range;
    lastStop = common->getStopIndex() + 1;
    emit(std::move(token));
  }

  void deepen(SourceRange range) {
    ++(brackets.empty() ? lineOperators : brackets.back().operators);
    if (++expressionDepth == limits::expression)
      abandon(diags.report(diag::NestingTooDeep, range, "operators", limits::expression));
  }

  void open(size_t closer, SourceRange range) {
    deepen(range);
    brackets.push_back({closer, range});
    if (brackets.size() > limits::brackets)
      abandon(diags.report(diag::NestingTooDeep, range, "brackets", limits::brackets));
  }

  void popBracket() {
    expressionDepth -= brackets.back().operators;
    brackets.pop_back();
  }

  /// Closes a bracket. Returns false if the token must be dropped, and may replace it by the matching one.
  bool close(antlr4::CommonToken &token, SourceRange range) {
    std::string_view found = file.slice(range);
    if (brackets.empty()) {
      diags.report(diag::UnmatchedBracket, range, found).fix(range, "");
      lineReported = true;
      return false;
    }
    if (brackets.back().closer != token.getType()) {
      diags.report(diag::MismatchedBracket, range, found, bracketText(brackets.back().closer))
          .note(diag::OpenedHere, brackets.back().range, file.slice(brackets.back().range));
      lineReported = true;
      bool closesOuter = std::any_of(brackets.begin(), brackets.end(),
                                     [&](const Bracket &bracket) { return bracket.closer == token.getType(); });
      if (!closesOuter)
        token.setType(brackets.back().closer);
      while (brackets.back().closer != token.getType()) {
        emit(brackets.back().closer);
        popBracket();
      }
    }
    popBracket();
    return true;
  }

  static std::string_view bracketText(size_t type) {
    return type == KLexer::RPAREN ? ")" : type == KLexer::RBRACKET ? "]" : "}";
  }

  /// Reports the innermost open bracket and closes all.
  void reportUnclosed() {
    diags.report(diag::UnclosedBracket, brackets.back().range, file.slice(brackets.back().range));
    lineReported = true;
    while (!brackets.empty()) {
      lastType = brackets.back().closer;
      emit(lastType);
      popBracket();
    }
  }

  /// Reports syntax that .k does not have. Returns the token type to continue with, or 0 to drop the token.
  size_t replaceForeign(size_t type, SourceRange range) {
    std::string_view text = file.slice(range);
    if (type == KLexer::RESERVED) {
      diags.report(diag::NotInLanguage, range, text, insteadOf(text));
      return type;
    }
    if (type == KLexer::INVALID) {
      if (text == "\\") {
        diags.report(diag::BadLineContinuation, range);
        joinsNextLine = true;
      } else if (!std::exchange(lineHasInvalid, true)) { // typographic quotes come in pairs
        diags.report(diag::InvalidCharacter, range, describeCharacter(text));
      }
      return 0;
    }
    auto report = [&](const char *fix) {
      DiagnosticBuilder builder = diags.report(diag::NotInLanguage, range, text, insteadOf(text));
      if (*fix)
        builder.fix(range, fix);
    };
    if (text == "&&")
      return report("and"), KLexer::AND;
    if (text == "||")
      return report("or"), KLexer::OR;
    if (text == "!")
      return report("not "), KLexer::NOT;
    if (text == "===")
      return report("=="), KLexer::EQUAL;
    if (text == ":=")
      return report("="), KLexer::ASSIGN;
    if (text == "..." && brackets.empty()) {
      diags.report(diag::NotInLanguage, range, text, "write what the function does");
      return KLexer::PASS;
    }
    report("");
    return 0;
  }

  void finish() {
    if (!lines.abandoned) {
      if (!brackets.empty())
        reportUnclosed();
      endLine();
      closeEmptyBlock();
      while (levels.size() > 1)
        dedent();
    }
    emit(antlr4::Token::EOF);
    lines.reported.resize(lines.tokens.size(), false);
  }
};
} // namespace

TokenLines kpkg::compiler::layOut(KLexer &lexer, const SourceFile &file, const CodePoints &places,
                                  DiagnosticEngine &diags) {
  return Layout(lexer, file, places, diags).run();
}
