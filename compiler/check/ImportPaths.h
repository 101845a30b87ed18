// Declares where `import` looks for a module.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "compiler/ast/Expr.h"
#include <string>
#include <vector>

namespace kpkg::compiler {

/// The name of the module that every file sees without an import. It is compiled in.
inline constexpr const char *preludeName = "std";

/// Returns the folders that an import in the file `from` searches, in order.
std::vector<std::string> importFolders(const std::string &from, const std::vector<std::string> &importPaths);

/// Returns the path of a module in such a folder, whether it exists or not.
std::string modulePath(const std::string &folder, const std::vector<ast::Identifier> &module);

/// Returns the canonical path, because one file has many paths, such as "m.k" and "./m.k".
std::string canonicalPath(const std::string &path);

} // namespace kpkg::compiler
