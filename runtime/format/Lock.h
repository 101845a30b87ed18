// Reads and checks lock files, which allow packages by digest and by signer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_LOCK_H
#define KPKG_FORMAT_LOCK_H

#include "runtime/format/Reader.h"

#include <kpkg/result.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kpkg::format {

/// A lock's requirements for a package; at least one of the two is set.
struct LockEntry {
  /// Of the whole file.
  std::optional<Sha256> digest;
  /// All of them must have signed.
  std::vector<PublicKey> signers;
};

/// The packages of a lock file by file name, without folders: a lock moves along with its packages.
class Lock {
public:
  /// Refuses a file of another format, entries without requirements, and unknown keys, because a mistyped requirement
  /// must not be ignored.
  static Result<Lock> open(const std::string &path);
  static Result<Lock> parse(std::string_view text, std::string path);

  /// Adds a package in its current state. If `withDigest` is false, later packages by the same signers are accepted,
  /// too. Refuses two files of one name, damaged packages, and entries without requirements.
  Status add(const Reader &package, bool withDigest);
  /// Returns KPKG_ERROR_TRUST for a package that is not in the lock, or differs from it. Digests of sections are not
  /// checked if the entry has no digest of the file.
  Status check(const Reader &package) const;

  /// Returns the text of the file.
  std::string text() const;
  size_t size() const { return packages.size(); }

private:
  std::string path;
  std::map<std::string, LockEntry> packages;
};

} // namespace kpkg::format
#endif
