// Formats a whole file: blocks, comments and blank lines. FormatLine.cpp formats the statements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Format.h"
#include "compiler/syntax/FormatLine.h"
#include "compiler/syntax/Layout.h"
#include "compiler/syntax/Parse.h"
#include <algorithm>
#include <utility>

using namespace kpkg::compiler;
using grammar::KLexer;

namespace {

/// Tokens with their ranges, of a file with valid UTF-8.
struct Tokens {
  explicit Tokens(const SourceFile &file, DiagnosticEngine &diags) : places(file) {
    antlr4::ANTLRInputStream characters{std::string(places.text())};
    KLexer lexer(&characters);
    lexer.removeErrorListeners();
    for (const auto &token : layOut(lexer, file, places, diags).tokens)
      all.push_back({token->getType(), places.range(*token)});
  }
  struct Token {
    size_t type;
    SourceRange range;
  };
  CodePoints places;
  std::vector<Token> all;
};

bool hasText(size_t type) {
  return type != KLexer::NEWLINE && type != KLexer::INDENT && type != KLexer::DEDENT && type != antlr4::Token::EOF;
}

/// A comment between tokens.
struct Comment {
  std::string_view text;
  size_t column;      // blanks before it
  size_t blankLines;  // before it
  bool isBehindToken; // on the line of the token before
};

/// The text between two tokens: blanks, line ends, comments and `\`.
struct Gap {
  std::vector<Comment> comments;
  size_t blankLines = 0; // after the last comment
  size_t column = 0;     // of the following token, in its line
  bool hasLineEnd = false;

  explicit Gap(std::string_view text, bool isFirst) {
    size_t lineEnds = isFirst ? 1 : 0;
    for (size_t i = 0; i < text.size();) {
      if (text[i] == '#') {
        size_t end = std::min(text.find_first_of("\r\n", i), text.size());
        std::string_view comment = text.substr(i, end - i);
        comment = comment.substr(0, comment.find_last_not_of(" \t\f") + 1);
        comments.push_back({comment, column, lineEnds > 0 ? lineEnds - 1 : 0, lineEnds == 0});
        lineEnds = 0;
        i = end;
      } else if (text[i] == '\r' || text[i] == '\n') {
        i += text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n' ? 2 : 1;
        ++lineEnds;
        hasLineEnd = true;
        column = 0;
      } else {
        ++column;
        ++i;
      }
    }
    blankLines = lineEnds > 0 ? lineEnds - 1 : 0;
  }
};

/// A statement's line, or a comment on a line of its own.
struct Line {
  std::vector<FormatToken> tokens; // none: a comment
  std::string_view comment;
  size_t depth = 0;
  size_t blankLines = 0;

  size_t first() const { return tokens.empty() ? 0 : tokens.front().type; }
  bool isDefinition() const { return first() == KLexer::FN || first() == KLexer::DEF || first() == KLexer::STRUCT; }
  bool isDecorator() const { return first() == KLexer::AT; }
};

class Formatter {
public:
  Formatter(const SourceFile &file, const Tokens &tokens) : file(file), tokens(tokens) {}

  std::string run() {
    readLines();
    std::string out;
    for (size_t i = 0; i < lines.size(); ++i) {
      out.append(blankLinesBefore(i), '\n');
      if (lines[i].tokens.empty())
        out.append(lines[i].depth * formatIndent, ' ').append(lines[i].comment);
      else
        appendStatement(out, lines[i].tokens, lines[i].depth * formatIndent);
      out += '\n';
    }
    return out;
  }

private:
  const SourceFile &file;
  const Tokens &tokens;
  std::vector<Line> lines;
  std::vector<size_t> columns{0}; // of the open blocks, in the source
  bool inDefinition = false;      // the preceding lines belong to a function or a struct of the module

  void readLines() {
    uint32_t end = file.text().size() - tokens.places.text().size(); // after a byte order mark
    size_t depth = 0, depthBefore = 0;
    bool isNewLine = true, isFirst = true;
    for (const Tokens::Token &token : tokens.all) {
      if (token.type == KLexer::INDENT)
        ++depth;
      else if (token.type == KLexer::DEDENT)
        --depth;
      else if (token.type == KLexer::NEWLINE)
        isNewLine = true;
      if (!hasText(token.type) && token.type != antlr4::Token::EOF)
        continue;
      bool isEnd = token.type == antlr4::Token::EOF;
      uint32_t begin = isEnd ? file.text().size() : token.range.begin;
      Gap gap(file.text().substr(end, begin - end), isFirst);
      end = token.range.end;
      isFirst = false;
      auto comment = gap.comments.begin();
      if (comment != gap.comments.end() && comment->isBehindToken)
        lines.back().tokens.back().commentAfter = (comment++)->text;
      if (isNewLine) {
        columns.resize(std::max(depth, depthBefore) + 1, gap.column);
        for (size_t least = std::max(depth, depthBefore); comment != gap.comments.end(); ++comment) {
          while (least > depth && columns[least] > comment->column)
            --least;
          lines.push_back({{}, comment->text, least, comment->blankLines});
        }
        if (isEnd)
          return;
        columns.resize(depth + 1);
        columns[depth] = gap.column;
        lines.push_back({{}, {}, depth, gap.blankLines});
        depthBefore = depth;
        isNewLine = false;
      }
      FormatToken next;
      next.type = token.type;
      next.text = file.slice(token.range);
      for (; comment != gap.comments.end(); ++comment)
        next.commentsBefore.push_back(comment->text);
      next.startsLine = gap.hasLineEnd;
      lines.back().tokens.push_back(std::move(next));
    }
  }

  /// Returns whether a function or a struct begins here, with its decorators and the comments directly above.
  bool beginsDefinition(size_t at) const {
    for (; at < lines.size() && lines[at].depth == 0; ++at) {
      if (!lines[at].tokens.empty())
        return lines[at].isDefinition() || lines[at].isDecorator();
      if (at + 1 < lines.size() && lines[at + 1].blankLines > 0)
        return false;
    }
    return false;
  }

  size_t blankLinesBefore(size_t at) {
    const Line &line = lines[at];
    bool wasInDefinition = inDefinition;
    if (line.depth == 0)
      inDefinition = line.isDefinition();
    if (at == 0)
      return 0;
    const Line &before = lines[at - 1];
    if (line.depth > before.depth || before.isDecorator())
      return 0;
    // A comment between decorators, or below the first comment of a function, stays in place.
    if (line.depth == 0 && before.depth == 0 && before.tokens.empty() && line.blankLines == 0)
      return 0;
    if (line.depth == 0 && (wasInDefinition || beginsDefinition(at)))
      return 2;
    return std::min<size_t>(line.blankLines, 1);
  }
};

/// The contents that formatting must not change.
struct Contents {
  std::vector<std::pair<size_t, std::string_view>> tokens;
  /// Comments with the number of preceding tokens. Tokens that begin and end blocks have no position in the text.
  std::vector<std::pair<size_t, std::string_view>> comments;
  bool operator==(const Contents &) const = default;

  explicit Contents(const SourceFile &file) {
    DiagnosticEngine ignored;
    Tokens read(file, ignored);
    uint32_t end = file.text().size() - read.places.text().size();
    size_t count = 0;
    for (const Tokens::Token &token : read.all) {
      bool isEnd = token.type == antlr4::Token::EOF;
      tokens.emplace_back(token.type, hasText(token.type) ? file.slice(token.range) : std::string_view());
      if (!hasText(token.type) && !isEnd)
        continue;
      uint32_t begin = isEnd ? file.text().size() : token.range.begin;
      for (const Comment &comment : Gap(file.text().substr(end, begin - end), false).comments)
        comments.emplace_back(count, comment.text);
      end = token.range.end;
      ++count;
    }
  }
};

} // namespace

std::optional<std::string> kpkg::compiler::formatSource(const SourceFile &file, DiagnosticEngine &diags) {
  parse(file, diags);
  if (diags.hasErrors())
    return std::nullopt;
  DiagnosticEngine known; // receives what parse() has reported
  Tokens tokens(file, known);
  return Formatter(file, tokens).run();
}

bool kpkg::compiler::hasSameTokens(const SourceFile &one, const SourceFile &other) {
  return Contents(one) == Contents(other);
}
