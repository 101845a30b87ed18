// The digests of files that a bundle signs: of one file, or of all files of a folder.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/kpkg/sign/SignedFiles.h"
#include "runtime/format/WholeFile.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kpkg::command::sign {

namespace fs = std::filesystem;

const std::vector<std::string> gitPaths = {".git", ".gitattributes", ".github", ".gitignore"};

SignedFiles ofBytes(std::string name, std::string_view bytes) {
  SignedFiles files;
  files.name = std::move(name);
  files.digests[theFile] = format::sha256(bytes);
  return files;
}

static bool isIgnored(const std::string &name, const std::vector<std::string> &ignored) {
  return std::any_of(ignored.begin(), ignored.end(), [&](const std::string &path) {
    return name.starts_with(path) && (name.size() == path.size() || name[path.size()] == '/');
  });
}

Result<SignedFiles> ofFolder(const std::string &path, std::vector<std::string> ignored, bool allowsLinks) {
  SignedFiles files;
  std::error_code error;
  files.name = fs::weakly_canonical(path, error).filename().string();
  files.allowsLinks = allowsLinks;
  fs::recursive_directory_iterator entry(path, error), end;
  for (; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().lexically_relative(path).generic_string();
    if (isIgnored(name, ignored)) {
      if (entry->is_directory(error))
        entry.disable_recursion_pending();
      continue;
    }
    auto refuse = [&](const char *why) {
      return Error{KPKG_ERROR_USE, fmt::format("'{}' is {}", entry->path().string(), why), {}, {}, {}};
    };
    if (entry->is_symlink(error) && !allowsLinks)
      return refuse("a symbolic link, and the bundle does not allow links");
    if (entry->is_directory(error))
      continue;
    if (!entry->is_regular_file(error))
      return refuse("neither a file nor a folder, and cannot be signed");
    auto file = format::WholeFile::open(entry->path().string());
    if (!file)
      return file.error();
    files.digests[name] = format::sha256(file->bytes());
  }
  if (error)
    return Error{KPKG_ERROR_FILE, fmt::format("cannot read '{}': {}", path, error.message()), {}, {}, {}};
  files.ignored = std::move(ignored);
  return files;
}

std::string insideOf(const std::string &folder, const std::string &path) {
  std::error_code error;
  fs::path relative = fs::weakly_canonical(path, error).lexically_relative(fs::weakly_canonical(folder, error));
  return relative.empty() || *relative.begin() == ".." ? "" : relative.generic_string();
}

std::string difference(const SignedFiles &files, const SignedFiles &wanted) {
  if (files.isFolder() != wanted.isFolder())
    return fmt::format("it signs a {}, and this is a {}", wanted.isFolder() ? "folder" : "file",
                       files.isFolder() ? "folder" : "file");
  std::vector<std::string> changed, missing, extra;
  for (const auto &[name, digest] : wanted.digests) {
    auto found = files.digests.find(name);
    if (found == files.digests.end())
      missing.push_back("'" + name + "'");
    else if (found->second != digest)
      changed.push_back("'" + name + "'");
  }
  for (const auto &[name, digest] : files.digests)
    if (!wanted.digests.count(name))
      extra.push_back("'" + name + "'");
  if (!wanted.isFolder())
    return changed.empty() ? "" : "the file is not the signed one: its SHA-256 differs";
  std::vector<std::string> all;
  for (const auto &[what, names] : {std::pair("changed", &changed), {"missing", &missing}, {"not signed", &extra}})
    if (!names->empty())
      all.push_back(fmt::format("{}: {}", what, fmt::join(*names, ", ")));
  return fmt::format("{}", fmt::join(all, "; "));
}

} // namespace kpkg::command::sign
