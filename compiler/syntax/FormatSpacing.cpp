// Computes the blanks between tokens from the brackets around a token and its neighbours.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/FormatSpacing.h"
#include <algorithm>

using namespace kpkg::compiler;
using grammar::KLexer;

namespace {

/// Returns how loosely a binary operator binds, in Python's order. `if` and `else` are those of `a if c else b`.
unsigned loosenessOf(size_t type) {
  switch (type) {
  case KLexer::IF:
  case KLexer::ELSE:
    return 11;
  case KLexer::OR:
    return 10;
  case KLexer::AND:
    return 9;
  case KLexer::EQUAL:
  case KLexer::NOT_EQUAL:
  case KLexer::LESS:
  case KLexer::LESS_EQUAL:
  case KLexer::GREATER:
  case KLexer::GREATER_EQUAL:
  case KLexer::IN:
  case KLexer::IS:
    return 8;
  case KLexer::BAR:
    return 7;
  case KLexer::CARET:
    return 6;
  case KLexer::AMPERSAND:
    return 5;
  case KLexer::SHIFT_LEFT:
  case KLexer::SHIFT_RIGHT:
    return 4;
  case KLexer::PLUS:
  case KLexer::MINUS:
    return 3;
  case KLexer::STAR:
  case KLexer::SLASH:
  case KLexer::DOUBLE_SLASH:
  case KLexer::PERCENT:
    return 2;
  case KLexer::DOUBLE_STAR:
    return 1;
  default:
    return 0;
  }
}

bool endsOperand(size_t type) {
  switch (type) {
  case KLexer::NAME:
  case KLexer::INTEGER:
  case KLexer::FLOAT:
  case KLexer::STRING:
  case KLexer::TRUE:
  case KLexer::FALSE:
  case KLexer::NONE:
    return true;
  default:
    return isCloser(type);
  }
}

class Spacer {
public:
  explicit Spacer(const std::vector<FormatToken> &tokens) : tokens(tokens), result(tokens.size()) {}

  std::vector<TokenSpacing> run() {
    for (at = 0; at < tokens.size(); ++at) {
      size_t type = tokens[at].type;
      if (isCloser(type))
        close();
      result[at].partner = isCloser(type) ? result[at].partner : at;
      result[at].depth = brackets.size();
      bool isOperator = at > 0 && endsOperand(tokens[at - 1].type);
      // `not in` is one operator, and `not` alone is not binary.
      if (type == KLexer::IN && at > 0 && tokens[at - 1].type == KLexer::NOT)
        result[at].looseness = 0;
      else if (type == KLexer::NOT && isOperator)
        result[at].looseness = loosenessOf(KLexer::IN);
      else
        result[at].looseness = isOperator ? loosenessOf(type) : 0;
      result[at].before = at > 0 && needsBlank(tokens[at - 1].type, type);
      track(type);
    }
    return std::move(result);
  }

private:
  enum class Kind { Parameters, Subscript, Entries, Other };
  struct Bracket {
    Kind kind;
    size_t opener;
    bool isAnnotated = false; // there was a colon since the last comma
    bool isWide = false;      // slice bounds here are more than names and numbers
  };

  const std::vector<FormatToken> &tokens;
  std::vector<TokenSpacing> result;
  std::vector<Bracket> brackets;
  size_t at = 0;
  size_t signature = 0; // tokens of `def name` so far: the next bracket has parameters

  size_t typeAt(size_t index) const { return index < tokens.size() ? tokens[index].type : 0; }

  void close() {
    if (brackets.empty())
      return;
    size_t opener = brackets.back().opener;
    brackets.pop_back();
    result[opener].partner = at;
    result[at].partner = opener;
  }

  bool isSign(size_t index) const {
    size_t type = tokens[index].type;
    return (type == KLexer::PLUS || type == KLexer::MINUS || type == KLexer::TILDE) &&
           (index == 0 || !endsOperand(tokens[index - 1].type));
  }
  bool isSlice(size_t index) const {
    return tokens[index].type == KLexer::COLON && !brackets.empty() && brackets.back().kind == Kind::Subscript;
  }
  /// Returns whether this is `name=` before an argument, or a default without a type.
  bool isBinding(size_t index) const {
    return tokens[index].type == KLexer::ASSIGN && !brackets.empty() &&
           !(brackets.back().kind == Kind::Parameters && brackets.back().isAnnotated);
  }

  bool needsBlank(size_t previous, size_t type) const {
    if (type == KLexer::COMMA || isCloser(type))
      return false;
    if (type == KLexer::DOT) // `1.shape` would be another number
      return previous == KLexer::INTEGER || previous == KLexer::FLOAT;
    if (isOpener(previous) || previous == KLexer::DOT || previous == KLexer::AT || isSign(at - 1))
      return false;
    if (isSlice(at))
      return previous == KLexer::COMMA || brackets.back().isWide;
    if (isSlice(at - 1))
      return brackets.back().isWide;
    if (type == KLexer::COLON || isBinding(at) || isBinding(at - 1))
      return false;
    if (isOpener(type))
      return !endsOperand(previous);
    return true;
  }

  /// Returns whether the item of a subscript, from `index` to the next comma, has arithmetic or calls.
  bool isWideFrom(size_t index) const {
    size_t depth = 0;
    for (; index < tokens.size(); ++index) {
      size_t type = tokens[index].type;
      if (depth == 0 && (type == KLexer::COMMA || isCloser(type)))
        return false;
      if (isOpener(type)) {
        if (type == KLexer::LPAREN)
          return true;
        ++depth;
      } else if (isCloser(type)) {
        --depth;
      } else if (depth == 0 && loosenessOf(type) > 0 && !isSign(index)) {
        return true;
      }
    }
    return false;
  }

  void track(size_t type) {
    if (isOpener(type)) {
      bool hasParameters = signature == 2 && brackets.empty();
      bool isAttached = at > 0 && endsOperand(tokens[at - 1].type);
      Kind kind = hasParameters                            ? Kind::Parameters
                  : type == KLexer::LBRACE                 ? Kind::Entries
                  : type == KLexer::LBRACKET && isAttached ? Kind::Subscript
                                                           : Kind::Other;
      brackets.push_back({kind, at, false, kind == Kind::Subscript && isWideFrom(at + 1)});
    } else if (type == KLexer::COMMA && !brackets.empty()) {
      brackets.back().isAnnotated = false;
      brackets.back().isWide = brackets.back().kind == Kind::Subscript && isWideFrom(at + 1);
    } else if (type == KLexer::COLON && !brackets.empty()) {
      brackets.back().isAnnotated = true;
    }
    if (type == KLexer::FN || type == KLexer::DEF)
      signature = 1;
    else if (type == KLexer::NAME && signature == 1)
      signature = 2;
    else if (type == KLexer::RPAREN && brackets.empty())
      signature = 0; // a result type has no parameters
  }
};

} // namespace

bool kpkg::compiler::isOpener(size_t type) {
  return type == KLexer::LPAREN || type == KLexer::LBRACKET || type == KLexer::LBRACE;
}

bool kpkg::compiler::isCloser(size_t type) {
  return type == KLexer::RPAREN || type == KLexer::RBRACKET || type == KLexer::RBRACE;
}

size_t kpkg::compiler::displayWidth(std::string_view text) {
  text = text.substr(0, text.find_first_of("\r\n"));
  return std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
}

std::vector<TokenSpacing> kpkg::compiler::spaceTokens(const std::vector<FormatToken> &tokens) {
  return Spacer(tokens).run();
}

unsigned kpkg::compiler::loosestOperator(const std::vector<TokenSpacing> &spacing, size_t begin, size_t end) {
  unsigned loosest = 0;
  for (size_t i = begin + 1; i < end; ++i)
    if (spacing[i].depth == spacing[begin].depth)
      loosest = std::max(loosest, spacing[i].looseness);
  return loosest;
}
