// The blanks between the tokens of a statement, and the structure of its brackets and operators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "KLexer.h"
#include "compiler/syntax/FormatLine.h"

namespace kpkg::compiler {

struct TokenSpacing {
  /// Blanks between it and the token before, on one line: 0 or 1.
  size_t before = 0;
  /// Of a bracket the index of its other half; else its own index.
  size_t partner = 0;
  /// Brackets around it.
  size_t depth = 0;
  /// How loosely a binary operator binds, the loosest most; 0 for other tokens.
  unsigned looseness = 0;
};

bool isOpener(size_t type);
bool isCloser(size_t type);

/// Code points of the text's first line.
size_t displayWidth(std::string_view text);

/// As long as `tokens`, whose brackets are balanced.
std::vector<TokenSpacing> spaceTokens(const std::vector<FormatToken> &tokens);

/// Of the binary operators between the first token of a range and its end, outside further brackets; 0 without any.
unsigned loosestOperator(const std::vector<TokenSpacing> &spacing, size_t begin, size_t end);

} // namespace kpkg::compiler
