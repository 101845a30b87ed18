// How syntax errors name tokens and what they advise.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <Vocabulary.h>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::compiler {

/// "`)`", "end of line", "name `x`", "number `1`", "a string". `text` is the token's source text.
std::string describeFound(size_t tokenType, std::string_view text);
/// "a name", "an expression", "`,` or `)`": what the parser could have read, without what says nothing (every operator
/// that could follow an operand).
std::string describeExpected(const std::vector<size_t> &tokenTypes, const antlr4::dfa::Vocabulary &vocabulary);
/// What to write in .k for a word or operator that other languages have.
std::string_view insteadOf(std::string_view foreign);
/// "`$`", "U+200B" for what cannot be seen, "`α` (U+03B1)" else.
std::string describeCharacter(std::string_view utf8);

} // namespace kpkg::compiler
