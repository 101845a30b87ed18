// Checks and evaluates number and string literals.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/syntax/Literals.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

using namespace kpkg::compiler;

namespace {
int digitValue(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z')
    return c - 'A' + 10;
  return 99;
}

/// Returns whether each underscore is between two digits.
bool underscoresFit(std::string_view digits) {
  for (size_t i = 0; i < digits.size(); ++i)
    if (digits[i] == '_' &&
        (i == 0 || i + 1 == digits.size() || digitValue(digits[i - 1]) == 99 || digitValue(digits[i + 1]) == 99))
      return false;
  return true;
}

void appendUtf8(std::string &out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}
} // namespace

ast::ExprPtr kpkg::compiler::integerLiteral(std::string_view text, SourceRange range, DiagnosticEngine &diags) {
  unsigned base = 10;
  std::string_view digits = text;
  if (text.size() > 1 && text[0] == '0' && digitValue(text[1]) > 9) {
    char letter = text[1] | 0x20;
    base = letter == 'x' ? 16 : letter == 'b' ? 2 : letter == 'o' ? 8 : 0;
    digits.remove_prefix(2);
  }
  auto wrong = [&](std::string_view why) {
    diags.report(diag::InvalidNumber, range, text, why);
    return std::make_unique<ast::ErrorExpr>(range);
  };
  if (base == 0)
    return wrong("`0x`, `0o` and `0b` start numbers in base 16, 8 and 2");
  if (digits.empty())
    return wrong("digits are missing");
  // 0x_ff is valid, as in Python.
  if (!underscoresFit(base == 10 || digits[0] != '_' ? digits : digits.substr(1)))
    return wrong("`_` stands between two digits");
  uint64_t value = 0;
  for (char c : digits) {
    if (c == '_')
      continue;
    unsigned digit = digitValue(c);
    if (digit >= base)
      return wrong(fmt::format("`{}` is not a digit in base {}", c, base));
    if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, digit, &value)) {
      diags.report(diag::IntegerTooLarge, range, text);
      return std::make_unique<ast::ErrorExpr>(range);
    }
  }
  if (base == 10 && digits.size() > 1 && digits[0] == '0' && value != 0)
    return wrong("a number other than 0 does not start with 0");
  return std::make_unique<ast::IntLiteral>(range, value);
}

ast::ExprPtr kpkg::compiler::floatLiteral(std::string_view text, SourceRange range, DiagnosticEngine &diags) {
  auto wrong = [&](std::string_view why) {
    diags.report(diag::InvalidNumber, range, text, why);
    return std::make_unique<ast::ErrorExpr>(range);
  };
  if (!underscoresFit(text))
    return wrong("`_` stands between two digits");
  std::string plain(text);
  std::erase(plain, '_');
  double value = 0;
  auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (end != plain.data() + plain.size())
    return wrong(fmt::format("`{}` does not belong to it", std::string_view(end, plain.data() + plain.size() - end)));
  if (error == std::errc::result_out_of_range) {
    // A number too small for a float is an error, unless it is written as zero.
    diags.report(diag::FloatOutOfRange, range, text);
    return std::make_unique<ast::ErrorExpr>(range);
  }
  return std::make_unique<ast::FloatLiteral>(range, value);
}

bool kpkg::compiler::appendString(std::string_view text, SourceRange range, std::string &value,
                                  DiagnosticEngine &diags) {
  std::string_view triple = text.substr(0, 3);
  bool isTriple = triple == "\"\"\"" || triple == "'''";
  std::string_view quote = text.substr(0, isTriple ? 3 : 1);
  bool good = true;
  size_t at = quote.size();
  while (at < text.size() && text.substr(at, quote.size()) != quote) {
    char c = text[at];
    if (c != '\\') {
      // Line ends are "\n" for any line ends of the file.
      if (c == '\r') {
        value += '\n';
        at += at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
      } else {
        value += c;
        ++at;
      }
      continue;
    }
    size_t begin = at++;
    char escape = at < text.size() ? text[at++] : '\0';
    constexpr std::string_view letters = "nrt0\\'\"abfv", values = {"\n\r\t\0\\'\"\a\b\f\v", 11};
    size_t known = letters.find(escape);
    size_t digits = escape == 'x' ? 2 : escape == 'u' ? 4 : escape == 'U' ? 8 : 0;
    if (escape == '\n') {
      // The string continues on the next line.
    } else if (escape == '\r') {
      at += at < text.size() && text[at] == '\n';
    } else if (escape != '\0' && known != std::string_view::npos) {
      value += values[known];
    } else {
      uint64_t code = 0;
      bool valid = digits != 0;
      for (size_t i = 0; valid && i < digits; ++i, ++at) {
        valid = at < text.size() && digitValue(text[at]) < 16;
        if (!valid)
          break;
        code = code * 16 + digitValue(text[at]);
      }
      valid = valid && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
      if (valid) {
        appendUtf8(value, code);
      } else {
        // Includes whole characters, so that the message stays valid UTF-8.
        while (at < text.size() && (text[at] & 0xC0) == 0x80)
          ++at;
        SourceRange where{range.file, static_cast<uint32_t>(range.begin + begin),
                          static_cast<uint32_t>(range.begin + at)};
        diags.report(diag::InvalidEscape, where, text.substr(begin, at - begin)).fix(where.atBegin(), "\\");
        good = false;
      }
    }
  }
  if (at >= text.size()) {
    diags.report(diag::UnterminatedString, {range.file, range.begin, range.begin + static_cast<uint32_t>(quote.size())},
                 isTriple ? "file" : "line");
    return false;
  }
  return good;
}

std::string kpkg::compiler::dedentDocstring(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  auto isBlank = [](std::string_view line) { return line.find_first_not_of(" \t") == std::string_view::npos; };
  // Ignores the first line, whose indentation the quotes hide.
  size_t indent = std::string_view::npos;
  for (size_t i = 1; i < lines.size(); ++i)
    if (!isBlank(lines[i]))
      indent = std::min(indent, lines[i].find_first_not_of(" \t"));
  lines[0].remove_prefix(std::min(lines[0].find_first_not_of(" \t"), lines[0].size()));
  while (!lines.empty() && isBlank(lines.back()))
    lines.pop_back();
  size_t first = 0;
  while (first < lines.size() && isBlank(lines[first]))
    ++first;
  std::string out;
  for (size_t i = first; i < lines.size(); ++i) {
    std::string_view line = lines[i];
    if (i > 0)
      line.remove_prefix(std::min(indent, line.size()));
    size_t end = line.find_last_not_of(" \t");
    out += line.substr(0, end == std::string_view::npos ? 0 : end + 1);
    if (i + 1 < lines.size())
      out += '\n';
  }
  return out;
}
