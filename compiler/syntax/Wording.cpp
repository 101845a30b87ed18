// Describes tokens in syntax errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Wording.h"
#include "KParser.h"
#include <algorithm>
#include <fmt/format.h>
#include <set>

using namespace kpkg::compiler;
using grammar::KParser;

std::string kpkg::compiler::describeFound(size_t tokenType, std::string_view text) {
  switch (tokenType) {
  case antlr4::Token::EOF:
    return "end of file";
  case KParser::NEWLINE:
    return "end of line";
  case KParser::INDENT:
    return "an indented block";
  case KParser::DEDENT:
    return "end of the block";
  case KParser::NAME:
    return fmt::format("name `{}`", text);
  case KParser::INTEGER:
  case KParser::FLOAT:
    return fmt::format("number `{}`", text);
  case KParser::STRING:
    return "a string";
  default:
    return fmt::format("`{}`", text);
  }
}

namespace {
constexpr size_t literalTypes[] = {
    KParser::INTEGER, KParser::FLOAT,    KParser::STRING, KParser::TRUE, KParser::FALSE, KParser::NONE,  KParser::NAME,
    KParser::LPAREN,  KParser::LBRACKET, KParser::LBRACE, KParser::PLUS, KParser::MINUS, KParser::TILDE, KParser::NOT};

bool continuesOperand(size_t type) {
  return (type >= KParser::PLUS && type <= KParser::GREATER_EQUAL) || type == KParser::DOT || type == KParser::AND ||
         type == KParser::OR || type == KParser::NOT || type == KParser::IN || type == KParser::IS ||
         type == KParser::IF || type == KParser::LPAREN || type == KParser::LBRACKET || type == KParser::AUGMENTED;
}

std::string nameOf(size_t type, const antlr4::dfa::Vocabulary &vocabulary) {
  switch (type) {
  case antlr4::Token::EOF:
    return "end of file";
  case KParser::NEWLINE:
    return "end of line";
  case KParser::INDENT:
    return "an indented block";
  case KParser::DEDENT:
    return "end of the block";
  case KParser::NAME:
    return "a name";
  case KParser::STRING:
    return "a string";
  case KParser::WHERE:
    return "`where`";
  default: {
    std::string literal = vocabulary.getLiteralName(type);
    if (literal.size() >= 2)
      return "`" + literal.substr(1, literal.size() - 2) + "`";
    return "a number";
  }
  }
}
} // namespace

std::string kpkg::compiler::describeExpected(const std::vector<size_t> &tokenTypes,
                                             const antlr4::dfa::Vocabulary &vocabulary) {
  std::set<size_t> types(tokenTypes.begin(), tokenTypes.end());
  std::vector<std::string> parts;
  if (types.contains(KParser::INTEGER) && types.contains(KParser::LPAREN)) {
    parts.push_back(types.contains(KParser::RETURN) ? "a statement" : "an expression");
    for (size_t type : literalTypes)
      types.erase(type);
  }
  if (types.contains(KParser::RETURN))
    types = {};
  // Any operator could follow an operand. Only tokens that close or continue help.
  if (types.contains(KParser::DOT) || types.contains(KParser::PLUS)) {
    std::set<size_t> closers;
    std::copy_if(types.begin(), types.end(), std::inserter(closers, closers.end()),
                 [](size_t type) { return !continuesOperand(type); });
    if (closers.size() > 1)
      closers.erase(KParser::ASSIGN);
    if (!closers.empty())
      types = closers;
  }
  for (size_t type : types)
    parts.push_back(nameOf(type, vocabulary));
  if (parts.empty())
    return "something else";
  constexpr size_t most = 5;
  if (parts.size() > most)
    parts.resize(most);
  std::string text = parts[0];
  for (size_t i = 1; i < parts.size(); ++i)
    text += (i + 1 == parts.size() ? " or " : ", ") + parts[i];
  return text;
}

std::string_view kpkg::compiler::insteadOf(std::string_view foreign) {
  constexpr std::pair<std::string_view, std::string_view> advice[] = {
      {"class", "write a `struct`, or functions with comptime parameters"},
      {"trait", "a comptime parameter takes any function or type that its use allows"},
      {"lambda", "write a function with `def` and pass its name"},
      {"try", "an op ends at the first error that is raised"},
      {"except", "an op ends at the first error that is raised"},
      {"finally", "an op ends at the first error that is raised"},
      {"with", "write the statements without it"},
      {"del", "values end with their block"},
      {"global", "name constants of the module with `comptime`"},
      {"nonlocal", "name constants of the module with `comptime`"},
      {"async", "the compiler orders memory and arithmetic by itself"},
      {"await", "the compiler orders memory and arithmetic by itself"},
      {"yield", "return a tuple or a list"},
      {"let", "declare with `var`, or with `comptime` what is known while compiling"},
      {"alias", "write `comptime`"},
      {"&&", "write `and`"},
      {"||", "write `or`"},
      {"!", "write `not`"},
      {"?", "write `a if condition else b`"},
      {";", "put each statement on a line of its own"},
      {":=", "assign in a statement of its own"},
      {"===", "write `==`"},
      {"@", "in a kernel write `dot(a, b, acc)` of two tiles; an op launches a kernel that multiplies"},
      {"inout", "write `mut`"},
      {"borrowed", "write the argument without it"},
      {"owned", "write the argument without it"},
      {"ref", "write the argument without it, or `mut` where it is written to"},
      {"...", "it stands in an index, for the dimensions that the others leave"},
  };
  for (auto [word, text] : advice)
    if (word == foreign)
      return text;
  return "it belongs to another language";
}

std::string kpkg::compiler::describeCharacter(std::string_view utf8) {
  auto byte = [&](size_t i) { return i < utf8.size() ? static_cast<unsigned char>(utf8[i]) : 0u; };
  char32_t value = byte(0);
  size_t length = 1;
  if (value >= 0xF0)
    value = (value & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), length = 4;
  else if (value >= 0xE0)
    value = (value & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), length = 3;
  else if (value >= 0xC0)
    value = (value & 0x1F) << 6 | (byte(1) & 0x3F), length = 2;
  uint32_t number = value;
  if (value < 0x20 || (value >= 0x7F && value < 0xA1) || (value >= 0x2000 && value < 0x2070) || value == 0xFEFF)
    return fmt::format("U+{:04X}", number);
  if (value < 0x80)
    return fmt::format("`{}`", utf8.substr(0, 1));
  return fmt::format("`{}` (U+{:04X})", utf8.substr(0, length), number);
}
