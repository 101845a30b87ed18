// Lock files: which packages may be opened, by digest and by signer.
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

/// What a lock says of a package; at least one of the two is there.
struct LockEntry {
  /// Of the whole file.
  std::optional<Sha256> digest;
  /// All of them must have signed.
  std::vector<PublicKey> signers;
};

/// The packages of a lock file by file name, without folders: a lock is moved along with its packages.
class Lock {
public:
  /// Refuses a file of another form, entries that say nothing, and keys that it does not know: a mistyped wish must
  /// not give less.
  static Result<Lock> open(const std::string &path);
  static Result<Lock> parse(std::string_view text, std::string path);

  /// Adds a package as it is now; `withDigest` false: later ones by the same signers will do, too. Two files of one
  /// name, damage, and what would leave an entry empty are refused.
  Status add(const Reader &package, bool withDigest);
  /// KPKG_ERROR_TRUST for a package that is not in the lock or is another one. Digests of sections are not looked at
  /// where the entry has no digest of the file.
  Status check(const Reader &package) const;

  /// The text of the file.
  std::string text() const;
  size_t size() const { return packages.size(); }

private:
  std::string path;
  std::map<std::string, LockEntry> packages;
};

} // namespace kpkg::format
#endif
