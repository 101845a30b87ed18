// Computes the blanks between the tokens of a statement, and the structure of its brackets and operators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "KLexer.h"
#include "compiler/syntax/FormatToken.h"

namespace kpkg::compiler {

struct TokenSpacing {
  /// Blanks between this token and the previous one, on one line: 0 or 1.
  size_t before = 0;
  /// The index of the matching bracket; for other tokens their own index.
  size_t partner = 0;
  /// The number of enclosing brackets.
  size_t depth = 0;
  /// How loosely a binary operator binds; larger is looser, and 0 is for other tokens.
  unsigned looseness = 0;
};

bool isOpener(size_t type);
bool isCloser(size_t type);

/// Returns the code points of the text's first line.
size_t displayWidth(std::string_view text);

/// Returns the spacing of each of `tokens`, whose brackets are balanced.
std::vector<TokenSpacing> spaceTokens(const std::vector<FormatToken> &tokens);

/// Returns the looseness of the loosest binary operator after the first token of a range, outside further brackets; 0
/// without any.
unsigned loosestOperator(const std::vector<TokenSpacing> &spacing, size_t begin, size_t end);

} // namespace kpkg::compiler
