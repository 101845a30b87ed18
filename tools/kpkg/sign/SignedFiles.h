// The digests of files that a bundle signs: of one file, or of all files of a folder.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "runtime/format/Digest.h"
#include <kpkg/result.hpp>
#include <map>
#include <string>
#include <vector>

namespace kpkg::command::sign {

/// The key of the only digest if a single file is signed, whatever its name is.
inline const std::string theFile = ".";

struct SignedFiles {
  /// The last part of the path, for readers: files may be renamed.
  std::string name;
  /// By path inside the folder, with `/`.
  std::map<std::string, format::Sha256> digests;
  /// Files and folders inside the folder that are not signed.
  std::vector<std::string> ignored;
  bool allowsLinks = false;

  bool isFolder() const { return !digests.count(theFile); }
};

/// What Git keeps beside a model, which the tools of OpenSSF Model Signing ignore as well.
extern const std::vector<std::string> gitPaths;

SignedFiles ofBytes(std::string name, std::string_view bytes);

/// Reads all files of a folder, except `ignored`. Symbolic links are refused unless `allowsLinks`.
Result<SignedFiles> ofFolder(const std::string &path, std::vector<std::string> ignored, bool allowsLinks);

/// Returns `path` relative to `folder`, or an empty text if it lies elsewhere.
std::string insideOf(const std::string &folder, const std::string &path);

/// Returns what distinguishes the files from the signed ones: changed, missing and extra files. Empty if nothing does.
std::string difference(const SignedFiles &files, const SignedFiles &wanted);

} // namespace kpkg::command::sign
