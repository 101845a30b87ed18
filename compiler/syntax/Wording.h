// Describes tokens in syntax errors, and gives advice.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <Vocabulary.h>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::compiler {

/// Describes a found token: "`)`", "end of line", "name `x`", "number `1`", "a string". `text` is the token's source
/// text.
std::string describeFound(size_t tokenType, std::string_view text);
/// Describes expected tokens: "a name", "an expression", "`,` or `)`". It omits operators that could follow any
/// operand.
std::string describeExpected(const std::vector<size_t> &tokenTypes, const antlr4::dfa::Vocabulary &vocabulary);
/// Returns the .k equivalent of a word or operator of other languages.
std::string_view insteadOf(std::string_view foreign);
/// Describes a character: "`$`", "U+200B" for an invisible one, otherwise "`α` (U+03B1)".
std::string describeCharacter(std::string_view utf8);

} // namespace kpkg::compiler
