// Formats one statement. It stays on one line if it fits; otherwise brackets open, and their contents fill lines with a
// hanging indent.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/FormatLine.h"
#include "compiler/syntax/FormatSpacing.h"
#include <algorithm>
#include <span>
#include <utility>

using namespace kpkg::compiler;

namespace {

class StatementPrinter {
public:
  StatementPrinter(std::string &out, const std::vector<FormatToken> &tokens, size_t indent)
      : out(out), tokens(tokens), spacing(spaceTokens(tokens)), column(indent), hang(indent + formatIndent) {
    size_t count = tokens.size();
    widths.assign(count + 1, 0);
    commentsBefore.assign(count + 1, 0);
    commentsAfter.assign(count + 1, 0);
    kept.assign(count + 1, 0);
    for (size_t i = 0; i < count; ++i) {
      widths[i + 1] = widths[i] + spacing[i].before + displayWidth(tokens[i].text);
      commentsBefore[i + 1] = commentsBefore[i] + !tokens[i].commentsBefore.empty();
      commentsAfter[i + 1] = commentsAfter[i] + !tokens[i].commentAfter.empty();
    }
    for (size_t i = 0; i < count; ++i) // at the closer, so that a head without it is not counted
      kept[i + 1] = kept[i] + (isCloser(tokens[i].type) && keepsLines(spacing[i].partner));
  }

  void print(size_t indent) { range(0, tokens.size(), indent, false); }

private:
  std::string &out;
  const std::vector<FormatToken> &tokens;
  std::vector<TokenSpacing> spacing;
  std::vector<size_t> widths, commentsBefore, commentsAfter, kept; // prefix sums over the tokens
  size_t column;
  size_t hang; // where a line begins after a comment
  bool atLineStart = true;
  bool afterComment = false;
  size_t reserved = 0; // columns at the end of lines for ` \`

  /// Returns whether the author ended a list with a comma and used several lines, which are kept.
  bool keepsLines(size_t opener) const {
    size_t closer = spacing[opener].partner;
    return closer > opener + 1 && tokens[closer - 1].type == grammar::KLexer::COMMA && tokens[opener + 1].startsLine;
  }
  size_t widthOf(size_t begin, size_t end) const {
    return begin == end ? 0 : widths[end] - widths[begin] - spacing[begin].before;
  }
  /// Returns whether neither a comment nor a kept list requires several lines.
  bool isOneLine(size_t begin, size_t end) const {
    return begin == end || (commentsBefore[end] == commentsBefore[begin + 1] &&
                            commentsAfter[end - 1] == commentsAfter[begin] && !keepsWithin(begin, end));
  }
  bool keepsWithin(size_t begin, size_t end) const {
    if (kept[end] == kept[begin])
      return false;
    for (size_t i = begin; i < end; ++i)
      if (kept[i + 1] > kept[i] && spacing[i].partner >= begin)
        return true;
    return false;
  }
  bool fits(size_t begin, size_t end) const {
    return isOneLine(begin, end) && !afterComment &&
           column + lead(begin) + widthOf(begin, end) + reserved <= formatColumns;
  }
  size_t lead(size_t at) const { return atLineStart ? 0 : spacing[at].before; }

  void newLine(size_t indent) {
    out += '\n';
    out.append(indent, ' ');
    column = indent;
    atLineStart = true;
    afterComment = false;
  }
  void putComments(size_t at, size_t indent) {
    for (std::string_view comment : tokens[at].commentsBefore) {
      if (!atLineStart)
        newLine(indent);
      out += comment;
      atLineStart = false;
    }
  }
  void put(size_t at) {
    bool isClosing = isCloser(tokens[at].type);
    if (at > 0 && !isClosing && !tokens[at].commentsBefore.empty()) {
      putComments(at, hang);
      newLine(hang);
    } else if (afterComment) {
      newLine(hang);
    }
    if (!atLineStart && spacing[at].before)
      out += ' ';
    column += lead(at) + displayWidth(tokens[at].text);
    out += tokens[at].text;
    atLineStart = false;
    if (!tokens[at].commentAfter.empty()) {
      out += "  ";
      out += tokens[at].commentAfter;
      afterComment = true;
    }
  }
  void putAll(size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      put(i);
  }

  /// Returns the bracket to open in a range that does not fit; `end` if there is none.
  size_t chooseBracket(size_t begin, size_t end, size_t indent) const {
    struct Candidate {
      size_t opener, body;
    };
    std::vector<Candidate> good;
    size_t widest = 0, first = end, widestGoodHead = end, widestHead = 0;
    for (size_t i = begin; i < end; ++i) {
      size_t closer = spacing[i].partner;
      if (!isOpener(tokens[i].type) || closer >= end)
        continue;
      if (!isOneLine(i, closer + 1))
        return i;
      if (closer == i + 1) {
        i = closer;
        continue;
      }
      first = std::min(first, i);
      size_t body = widthOf(i + 1, closer);
      if (column + lead(begin) + widthOf(begin, i + 1) <= formatColumns) {
        if (body > widestHead)
          widestHead = body, widestGoodHead = i;
        if (indent + widthOf(closer, end) <= formatColumns) {
          good.push_back({i, body});
          widest = std::max(widest, body);
        }
      }
      i = closer;
    }
    // The last bracket reads best, unless its contents are short.
    for (size_t i = good.size(); i-- > 0;)
      if (2 * good[i].body >= widest)
        return good[i].opener;
    return widestGoodHead < end ? widestGoodHead : first;
  }

  /// Prints tokens from the current column on. Further lines begin at `indent` or deeper.
  void range(size_t begin, size_t end, size_t indent, bool inBrackets) {
    while (begin < end && !fits(begin, end)) {
      size_t opener = chooseBracket(begin, end, indent);
      bool isOutside = spacing[begin].depth == 0;
      bool mayFill = (inBrackets || isOutside) && isOneLine(begin, end);
      // A continuation of a block's head must not look like the block's first statement.
      bool isHead = isOutside && tokens.back().type == grammar::KLexer::COLON;
      size_t hanging = indent + (isHead ? 2 : 1) * formatIndent;
      if (mayFill && (opener == end || splitsBetter(begin, end, opener)) && fillOperators(begin, end, indent, hanging))
        return;
      if (opener == end && isOutside && mayFill && fillItems(begin, end, indent, hanging, false))
        return;
      if (opener == end)
        break;
      size_t closer = spacing[opener].partner;
      if (opener > begin && !fits(begin, opener + 1))
        range(begin, opener, indent, false);
      else
        putAll(begin, opener);
      put(opener);
      body(opener, indent + formatIndent);
      newLine(indent);
      begin = closer;
    }
    size_t outer = std::exchange(hang, indent + (inBrackets ? 0 : formatIndent));
    putAll(begin, end);
    hang = outer;
  }

  /// Returns whether to break before an operator that binds looser than the bracket: `a(...) + b(...)` reads better
  /// broken before `+`.
  bool splitsBetter(size_t begin, size_t end, size_t opener) const {
    return loosestOperator(spacing, begin, end) != 0 &&
           widthOf(opener, spacing[opener].partner + 1) * 2 < widthOf(begin, end);
  }

  /// Prints the contents of a bracket on separate lines.
  void body(size_t opener, size_t indent) {
    size_t begin = opener + 1, end = spacing[opener].partner;
    size_t outer = std::exchange(hang, indent);
    if (begin < end)
      newLine(indent);
    if (!keepsLines(opener) && fits(begin, end))
      putAll(begin, end);
    else if (!fillItems(begin, end, indent, indent, keepsLines(opener)) && !fillOperators(begin, end, indent, indent))
      range(begin, end, indent, false);
    if (!tokens[end].commentsBefore.empty())
      putComments(end, indent);
    hang = outer;
  }

  /// Fills comma-separated items into lines; returns false if there are none.
  bool fillItems(size_t begin, size_t end, size_t indent, size_t hanging, bool keeps) {
    std::vector<size_t> starts{begin};
    size_t depth = spacing[begin].depth;
    for (size_t i = begin; i + 1 < end; ++i)
      if (tokens[i].type == grammar::KLexer::COMMA && spacing[i].depth == depth)
        starts.push_back(i + 1);
    if (starts.size() == 1 && tokens[end - 1].type != grammar::KLexer::COMMA)
      return false;
    fill(starts, end, indent, hanging, keeps);
    return true;
  }

  /// Fills the operands of the loosest operators into lines that begin with an operator; returns false if there are
  /// none.
  bool fillOperators(size_t begin, size_t end, size_t indent, size_t hanging) {
    unsigned loosest = loosestOperator(spacing, begin, end);
    if (loosest == 0)
      return false;
    std::vector<size_t> starts{begin};
    for (size_t i = begin + 1; i < end; ++i)
      if (spacing[i].depth == spacing[begin].depth && spacing[i].looseness == loosest)
        starts.push_back(i);
    fill(starts, end, indent, hanging, false);
    return true;
  }

  /// Fills lines, which `\` continues outside brackets.
  void fill(std::span<const size_t> starts, size_t end, size_t indent, size_t hanging, bool keeps) {
    bool isContinued = spacing[starts.front()].depth == 0;
    size_t outer = std::exchange(reserved, isContinued ? 2 : 0);
    bool wasBroken = false;
    for (size_t i = 0; i < starts.size(); ++i) {
      size_t from = starts[i], to = i + 1 < starts.size() ? starts[i + 1] : end;
      bool breaks = i > 0 && (wasBroken || afterComment || !tokens[from].commentsBefore.empty() ||
                              (keeps && tokens[from].startsLine) || !fits(from, to));
      if (breaks && isContinued)
        out += " \\";
      if (breaks)
        newLine(hanging);
      if (to == end)
        reserved = outer;
      size_t length = out.size();
      range(from, to, i == 0 ? indent : hanging, true);
      wasBroken = out.find('\n', length) != std::string::npos;
    }
  }
};

} // namespace

void kpkg::compiler::appendStatement(std::string &out, std::vector<FormatToken> &tokens, size_t indent) {
  out.append(indent, ' ');
  StatementPrinter(out, tokens, indent).print(indent);
}
