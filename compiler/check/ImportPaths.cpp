// Implements the search for modules.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/check/ImportPaths.h"
#include <filesystem>

namespace kpkg::compiler {

std::vector<std::string> importFolders(const std::string &from, const std::vector<std::string> &importPaths) {
  // Searches the file's folder, and its parent with the modules that a family of packages shares.
  std::filesystem::path beside = std::filesystem::path(from).parent_path();
  std::vector<std::string> folders = {beside.string(), (beside / "..").lexically_normal().string()};
  folders.insert(folders.end(), importPaths.begin(), importPaths.end());
  return folders;
}

std::string modulePath(const std::string &folder, const std::vector<ast::Identifier> &module) {
  std::filesystem::path path(folder);
  for (const ast::Identifier &part : module)
    path /= part.text;
  return path.string() + ".k";
}

std::string canonicalPath(const std::string &path) {
  std::error_code error;
  std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  return error ? path : canonical.string();
}

} // namespace kpkg::compiler
