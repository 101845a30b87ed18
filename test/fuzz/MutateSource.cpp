// Implements mutations of source: tokens are replaced by tokens of their kind, lines move, expressions and blocks nest.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/fuzz/MutateSource.h"

#include <cctype>
#include <cstring>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace kpkg::fuzz {

namespace {

enum class Kind { Word, Number, Mark, Space };

struct Token {
  Kind kind;
  std::string text;
};

bool isWordStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool isWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::vector<Token> tokenize(std::string_view text) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < text.size();) {
    size_t begin = at++;
    Kind kind = Kind::Mark;
    if (isWordStart(text[begin])) {
      kind = Kind::Word;
      while (at < text.size() && isWordPart(text[at]))
        ++at;
    } else if (std::isdigit(static_cast<unsigned char>(text[begin]))) {
      kind = Kind::Number;
      while (at < text.size() && (isWordPart(text[at]) || text[at] == '.'))
        ++at;
    } else if (std::isspace(static_cast<unsigned char>(text[begin]))) {
      kind = Kind::Space;
    } else {
      static constexpr std::string_view pairs[] = {
          "->", "**", "//", "<<", ">>", "==", "!=", "<=", ">=", "+=", "-=", "*="};
      for (std::string_view pair : pairs)
        if (text.substr(begin, 2) == pair)
          at = begin + 2;
    }
    tokens.push_back({kind, std::string(text.substr(begin, at - begin))});
  }
  return tokens;
}

class Mutation {
public:
  Mutation(std::string text, std::string_view known, std::mt19937 &random)
      : text(std::move(text)), known(known), random(random) {}

  std::string run() {
    switch (below(10)) {
    case 0:
      moveLine();
      break;
    case 1:
      nestExpression();
      break;
    case 2:
      nestBlock();
      break;
    case 3:
      repeatToken();
      break;
    default:
      replaceToken();
    }
    return std::move(text);
  }

private:
  size_t below(size_t bound) { return random() % bound; }

  /// Returns a token of a kind of this text or, in some draws, of `known`.
  std::string otherToken(Kind kind, const std::vector<Token> &own) {
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "-1",
                                          "7",
                                          "16",
                                          "64",
                                          "1024",
                                          "2147483648",
                                          "1.5",
                                          "1e30",
                                          "0x7fffffffffffffff",
                                          "9223372036854775808",
                                          "1e999",
                                          "3000000"};
    if (kind == Kind::Number && below(2))
      return numbers[below(std::size(numbers))];
    size_t part = known.size() > 200 ? below(known.size() - 200) : 0;
    std::vector<Token> other = below(3) ? own : tokenize(known.substr(part, 200));
    const std::vector<Token> &from = other.empty() ? own : other;
    for (int i = 0; i < 32; ++i)
      if (const Token &token = from[below(from.size())]; token.kind == kind)
        return token.text;
    return from[below(from.size())].text;
  }
  void replaceToken() {
    std::vector<Token> tokens = tokenize(text);
    if (tokens.empty())
      return;
    size_t at = below(tokens.size());
    for (int i = 0; i < 8 && tokens[at].kind == Kind::Space; ++i)
      at = below(tokens.size());
    if (below(8) == 0)
      tokens[at].text.clear();
    else
      tokens[at].text = otherToken(tokens[at].kind, tokens);
    join(tokens);
  }
  void repeatToken() {
    std::vector<Token> tokens = tokenize(text);
    if (tokens.empty())
      return;
    size_t from = below(tokens.size()), count = 1 + below(6), times = 1 + below(below(4) ? 3 : 100);
    std::string part;
    for (size_t i = from; i < std::min(from + count, tokens.size()); ++i)
      part += tokens[i].text;
    size_t to = below(tokens.size());
    for (size_t i = 0; i < times; ++i)
      tokens[to].text += part;
    join(tokens);
  }
  void join(const std::vector<Token> &tokens) {
    text.clear();
    for (const Token &token : tokens)
      text += token.text;
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> found(1);
    for (char c : text) {
      found.back() += c;
      if (c == '\n')
        found.emplace_back();
    }
    return found;
  }
  void join(const std::vector<std::string> &parts) {
    text.clear();
    for (const std::string &part : parts)
      text += part;
  }
  void moveLine() {
    std::vector<std::string> all = lines();
    size_t from = below(all.size()), to = below(all.size());
    std::string line = all[from];
    if (below(2))
      all.erase(all.begin() + std::ptrdiff_t(from));
    all.insert(all.begin() + std::ptrdiff_t(std::min(to, all.size())), line);
    join(all);
  }
  /// Puts a word or a number into brackets, calls, signs or a chain of operations, up to the parser's limits and
  /// beyond.
  void nestExpression() {
    static constexpr std::pair<const char *, const char *> wraps[] = {{"(", ")"},
                                                                      {"-", ""},
                                                                      {"not ", ""},
                                                                      {"[", "]"},
                                                                      {"exp(", ")"},
                                                                      {"", " + 1"},
                                                                      {"(1 if True else ", ")"},
                                                                      {"", "[0]"},
                                                                      {"", ".T"},
                                                                      {"max(", ", 2)"},
                                                                      {"", " ** 2"},
                                                                      {"float32(", ")"}};
    std::vector<Token> tokens = tokenize(text);
    if (tokens.empty())
      return;
    size_t at = below(tokens.size());
    for (int i = 0; i < 8 && tokens[at].kind != Kind::Word && tokens[at].kind != Kind::Number; ++i)
      at = below(tokens.size());
    auto [open, close] = wraps[below(std::size(wraps))];
    size_t depth = 1 + below(below(4) ? 4 : 200);
    std::string before, after;
    for (size_t i = 0; i < depth; ++i) {
      before += open;
      after += close;
    }
    tokens[at].text = before + tokens[at].text + after;
    join(tokens);
  }
  /// Puts a line into blocks.
  void nestBlock() {
    static const char *const heads[] = {"if True:\n", "for i in range(2):\n", "comptime for i in range(3):\n",
                                        "while False:\n", "comptime if True:\n"};
    std::vector<std::string> all = lines();
    std::string &line = all[below(all.size())];
    size_t indent = std::min(line.find_first_not_of(' '), line.size());
    std::string rest = line.substr(indent);
    line.clear();
    const char *head = heads[below(std::size(heads))];
    size_t depth = 1 + below(below(4) ? 3 : 70);
    for (size_t i = 0; i < depth; ++i, indent += 4)
      line += std::string(indent, ' ') + head;
    line += std::string(indent, ' ') + rest;
    join(all);
  }

  std::string text;
  std::string_view known;
  std::mt19937 &random;
};

} // namespace

std::string mutateSource(const std::string &text, std::string_view known, std::mt19937 &random) {
  std::string changed = text;
  for (size_t i = 0, count = 1 + random() % 3; i < count; ++i)
    changed = Mutation(std::move(changed), known, random).run();
  return changed;
}

size_t mutateInput(uint8_t *data, size_t size, size_t maxSize, unsigned seed, std::string_view known) {
  std::mt19937 random(seed);
  if (random() % 8 == 0)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::string changed = mutateSource(std::string(reinterpret_cast<const char *>(data), size), known, random);
  if (changed.empty() || changed.size() > maxSize)
    return LLVMFuzzerMutate(data, size, maxSize);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}

} // namespace kpkg::fuzz
