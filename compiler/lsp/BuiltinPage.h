// Declares the documentation of built-in names: compiler/check/signatures.txt and docs/language.md, compiled in.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::lsp {

/// Returns the signatures and meanings of a built-in name, else its row in docs/language.md, as Markdown. Empty if
/// there is neither. Names of members have a dot: ".T".
std::string builtinDocumentation(const std::string &name);

/// Returns the names of a built-in function's arguments that callers may write.
std::vector<std::string> builtinArguments(const std::string &name);

/// The names that need no import: functions, types, constants and words with a meaning in some places.
const std::vector<std::string> &builtinFunctions();
const std::vector<std::string> &builtinTypes();
/// Returns the methods, or the attributes, of "Tile", "View", "Window", "Tensor", "List" or "DType". An empty string
/// means all of them.
std::vector<std::string> methodsOf(std::string_view base);
std::vector<std::string> attributesOf(std::string_view base);

} // namespace kpkg::lsp
