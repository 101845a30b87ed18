// Lists the keywords of the language.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string>
#include <vector>

namespace kpkg::compiler {

/// Returns the sorted words that have a token of their own, so that they are no names. Words that are reserved for
/// messages alone are not among them.
const std::vector<std::string> &keywords();

/// Returns whether the text is one name, and no keyword.
bool isName(const std::string &text);

} // namespace kpkg::compiler
