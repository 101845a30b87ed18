// Provides a small valid package, and malformed packages with the reader's error for each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_TEST_RUNTIME_FORMAT_SAMPLEPACKAGES_H
#define KPKG_TEST_RUNTIME_FORMAT_SAMPLEPACKAGES_H

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace kpkg::test {

/// Returns a package with two sections: "docs/a" stored uncompressed, "docs/b" with zstd.
std::string validPackage();

/// Returns a file with this manifest text and these bytes after it, padding included, and a valid header and digest.
std::string assemble(const std::string &manifest, const std::string &data);

/// Return the manifest and the data of a file that the reader accepts.
nlohmann::json manifestOf(const std::string &package);
std::string dataOf(const std::string &package);

struct Malformed {
  /// File name in the corpus.
  std::string name;
  std::string bytes;
  /// Part of the error message.
  std::string message;
};
/// Returns files that open() refuses.
std::vector<Malformed> malformedPackages();

} // namespace kpkg::test
#endif
