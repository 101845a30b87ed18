// Caches machine code on disk by content, shared by processes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace kpkg::compiler {

/// Files named by the SHA-256 of the inputs. A file is written under a temporary name and renamed, so that readers see
/// all of it or nothing. A damaged file counts as absent. Disk errors cost time, but never fail the build. LLVM's cache
/// pruning removes files that nothing has read for a month, and the oldest ones beyond 2 GiB.
class CodeCache {
public:
  /// Returns the cache in KPKG_CACHE_DIR, else XDG_CACHE_HOME/kpkg, else ~/.cache/kpkg. An empty KPKG_CACHE_DIR
  /// disables it.
  static CodeCache fromEnvironment();
  /// Creates a cache in `folder`; an empty path disables it.
  explicit CodeCache(std::string folder) : folder(std::move(folder)) {}

  /// Returns the folder; empty if the cache is disabled.
  const std::string &path() const { return folder; }
  static std::string keyOf(llvm::ArrayRef<llvm::StringRef> inputs);
  std::optional<std::string> read(llvm::StringRef key) const;
  void write(llvm::StringRef key, llvm::StringRef content) const;

private:
  std::string folder;
};

} // namespace kpkg::compiler
