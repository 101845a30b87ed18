// Opens a package: checks its header, manifest and section table completely, and reads sections on demand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KPKG_FORMAT_READER_H
#define KPKG_FORMAT_READER_H

#include "runtime/format/Container.h"
#include "runtime/format/Digest.h"
#include "runtime/format/WholeFile.h"

#include <kpkg/result.hpp>
#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kpkg::format {

/// A section's contents: a part of the file, or separate memory if they were compressed.
struct Contents {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

/// A signature in a package.
struct Signer {
  PublicKey key;
  /// Whether the signature is valid for this package and key.
  bool isValid = false;
};

/// An open package. Immutable: any number of threads may read.
class Reader {
public:
  static Result<Reader> open(const std::string &path);
  /// Opens a package in memory. `bytes` must outlive the reader and its results. `name` is the file's name in messages.
  static Result<Reader> fromMemory(std::string_view bytes, std::string name);

  const std::string &name() const { return fileName; }
  uint16_t minor() const { return minorOfFile; }
  const nlohmann::json &manifest() const { return *parsed; }
  std::string_view manifestText() const { return text; }
  const std::vector<Section> &sections() const { return table; }
  /// Returns a section of a known kind by name; null if there is none. Signatures are excluded, because they are not
  /// signed themselves.
  const Section *find(std::string_view name) const;

  /// Returns the decompressed contents. If `checkDigest`, refuses them unless the SHA-256 of the stored bytes is the
  /// manifest's.
  Result<Contents> read(const Section &section, bool checkDigest) const;
  Status checkDigest(const Section &section) const;
  /// Checks every section's digest, and decompresses it, including sections that nothing reads.
  Status checkSections() const;
  /// Returns the SHA-256 of the whole file.
  Sha256 fileDigest() const { return sha256(bytes); }
  /// Returns the bytes in the file, unchecked.
  std::string_view stored(const Section &section) const;

  /// Returns the signers of the signature sections, in order. Fails for a section with a wrong digest.
  Result<std::vector<Signer>> signers() const;
  /// Succeeds if one of the signature sections is valid and by one of `keys`.
  Status checkSignature(const std::vector<PublicKey> &keys) const;

private:
  Reader() = default;
  static Result<Reader> make(WholeFile file, std::string_view bytes, std::string name);
  Status readHeader();
  Status readSectionTable();
  Error refuse(std::string why) const;

  std::string fileName;
  WholeFile file;
  std::string_view bytes;
  std::string_view text;
  uint16_t minorOfFile = 0;
  uint64_t dataStart = 0;
  std::shared_ptr<const nlohmann::json> parsed;
  std::vector<Section> table;
  std::unordered_map<std::string_view, size_t> usable; ///< the sections that find() returns, as indices in `table`
};

/// Returns the signed message: the whole manifest except the signature sections themselves.
Result<std::string> signedMessage(const nlohmann::json &manifest);

} // namespace kpkg::format
#endif
