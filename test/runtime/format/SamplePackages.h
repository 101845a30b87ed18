// A small valid package, and every way in which a file is no package, with what the reader has to say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_RUNTIME_FORMAT_SAMPLEPACKAGES_H
#define KPKG_TEST_RUNTIME_FORMAT_SAMPLEPACKAGES_H

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace kpkg::test {

/// Two sections: "docs/a" stored as it is, "docs/b" with zstd.
std::string validPackage();

/// A file with this manifest text and these bytes after it (padding included); header and its digest are right.
std::string assemble(const std::string &manifest, const std::string &data);

/// The manifest and the data of a file that the reader accepts.
nlohmann::json manifestOf(const std::string &package);
std::string dataOf(const std::string &package);

struct Malformed {
  /// File name in the corpus.
  std::string name;
  std::string bytes;
  /// Part of the refusal.
  std::string message;
};
/// Files that open() refuses.
std::vector<Malformed> malformedPackages();

} // namespace kpkg::test
#endif
