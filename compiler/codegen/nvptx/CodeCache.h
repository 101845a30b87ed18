// Assembled code by content, on disk, shared by processes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace kpkg::compiler {

/// Files named by the SHA-256 of what went in. A file is written under another name and renamed, so a reader sees all
/// of it or nothing; a damaged one counts as absent. Whatever fails on the disk costs time, never the build.
class CodeCache {
public:
  /// In KPKG_CACHE_DIR, else XDG_CACHE_HOME/kpkg, else ~/.cache/kpkg. An empty KPKG_CACHE_DIR keeps nothing.
  static CodeCache fromEnvironment();
  /// In `folder`; empty: keeps nothing.
  explicit CodeCache(std::string folder) : folder(std::move(folder)) {}

  /// Empty: nothing is kept.
  const std::string &path() const { return folder; }
  static std::string keyOf(llvm::ArrayRef<llvm::StringRef> inputs);
  std::optional<std::string> read(llvm::StringRef key) const;
  void write(llvm::StringRef key, llvm::StringRef content) const;

private:
  std::string folder;
};

} // namespace kpkg::compiler
