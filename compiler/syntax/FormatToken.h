// Declares the tokens that the formatter prints, and the limits of its lines.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

namespace kpkg::compiler {

struct FormatToken {
  size_t type = 0;
  std::string_view text;
  /// Comments on separate lines before the token, without surrounding blanks.
  std::vector<std::string_view> commentsBefore;
  /// The comment after the token on its line; empty without one.
  std::string_view commentAfter;
  /// Whether it begins a line of the source.
  bool startsLine = false;
};

/// Columns per level of indentation.
inline constexpr size_t formatIndent = 4;
/// Maximum of columns per line that can be broken.
inline constexpr size_t formatColumns = 120;

} // namespace kpkg::compiler
