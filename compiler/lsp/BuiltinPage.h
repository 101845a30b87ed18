// Declares the documentation of built-in names: the rows of the tables in docs/language.md, which is compiled in.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::lsp {

/// Returns what docs/language.md says about a built-in name, as Markdown; empty if it has no row. Names of members have
/// a dot: ".T".
std::string builtinDocumentation(const std::string &name);

/// The names that need no import: functions, types, constants and words with a meaning in some places.
const std::vector<std::string> &builtinFunctions();
const std::vector<std::string> &builtinTypes();
/// Returns the methods, or the attributes, of "Tile", "View", "Window", "Tensor", "List" or "DType". An empty string
/// means all of them.
std::vector<std::string> methodsOf(std::string_view base);
std::vector<std::string> attributesOf(std::string_view base);

} // namespace kpkg::lsp
