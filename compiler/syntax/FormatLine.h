// Formats one statement: spaces between its tokens, and line breaks if it is too long.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/syntax/FormatToken.h"
#include <string>

namespace kpkg::compiler {

/// Appends a statement, or its part on a line with blocks, without a line end. The caller prints comments before its
/// first token.
void appendStatement(std::string &out, std::vector<FormatToken> &tokens, size_t indent);

} // namespace kpkg::compiler
