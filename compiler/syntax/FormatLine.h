// The layout of one statement: spaces between its tokens, and where it breaks when it is too long.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::compiler {

struct FormatToken {
  size_t type = 0;
  std::string_view text;
  /// Comments on lines of their own before it, without what surrounds them.
  std::vector<std::string_view> commentsBefore;
  /// The comment behind it on its line; empty without one.
  std::string_view commentAfter;
  /// It begins a line of the source.
  bool startsLine = false;
};

/// Columns of one level of indentation.
inline constexpr size_t formatIndent = 4;
/// Columns that a line has at most, where it can be broken.
inline constexpr size_t formatColumns = 120;

/// Appends a statement, or what of one stands on a line of blocks, without a line end. Comments before its first token
/// are left to the caller.
void appendStatement(std::string &out, std::vector<FormatToken> &tokens, size_t indent);

} // namespace kpkg::compiler
