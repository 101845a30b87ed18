// Writes a package. The same input gives the same bytes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Writer.h"
#include "runtime/format/CanonicalJson.h"
#include "runtime/format/Reader.h"
#include "runtime/manifest/Write.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <zstd.h>

namespace kpkg::format {

using nlohmann::json;

/// It affects the bytes of every package, so it never changes within a major version.
static constexpr int zstdLevel = 12;

static Error writeError(std::string message) { return {KPKG_ERROR_FORMAT, std::move(message), {}, {}, {}}; }

Status Writer::add(std::string name, std::string kind, std::string contents, Compression compression, bool required) {
  const SectionKind *known = findKind(kind);
  if (uint64_t limit = known ? known->maxBytes : maxSectionBytes; contents.size() > limit)
    return writeError("section '" + name + "' of kind '" + kind + "' is larger than the limit of " +
                      std::to_string(limit) + " bytes");
  if (name.empty() || name.size() > maxNameBytes)
    return writeError("section name '" + name + "' is empty or longer than " + std::to_string(maxNameBytes) + " bytes");
  if (has(name))
    return writeError("section '" + name + "' is added twice");
  Pending added;
  added.section.name = std::move(name);
  added.section.kind = std::move(kind);
  added.section.size = contents.size();
  added.section.required = required;
  added.stored = std::move(contents);
  if (compression == Compression::Zstd) {
    std::string packed(ZSTD_compressBound(added.stored.size()), '\0');
    size_t size = ZSTD_compress(packed.data(), packed.size(), added.stored.data(), added.stored.size(), zstdLevel);
    if (ZSTD_isError(size))
      return writeError("section '" + added.section.name + "' does not compress: " + ZSTD_getErrorName(size));
    if (size < added.stored.size() && added.stored.size() <= maxExpanded(size)) {
      packed.resize(size);
      added.stored = std::move(packed);
      added.section.compression = Compression::Zstd;
    }
  }
  added.section.stored = added.stored.size();
  added.section.digest = sha256(added.stored);
  added.section.sha256 = toHex(added.section.digest.data(), added.section.digest.size());
  pending.push_back(std::move(added));
  return {};
}

bool Writer::has(std::string_view name) const {
  return std::any_of(pending.begin(), pending.end(), [&](const Pending &item) { return item.section.name == name; });
}

Status Writer::copy(const Reader &from, const Section &section) {
  // A copy with a new digest would hide damage.
  if (auto contents = from.read(section, /*checkDigest=*/true); !contents)
    return contents.error();
  if (has(section.name))
    return writeError("section '" + section.name + "' is added twice");
  pending.push_back({section, std::string(from.stored(section))});
  return {};
}

static void putLittleEndian(std::string &bytes, size_t offset, uint64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i)
    bytes[offset + i] = char(value >> (8 * i) & 0xff);
}

Result<std::string> Writer::finish(const json &manifest, const SecretKey *key) {
  json complete = manifest;
  complete["format"] = manifest::write(manifest::Format{majorVersion, minorVersion});
  uint64_t end = 0;
  auto place = [&](Pending &item) {
    item.section.offset = alignUp(end);
    end = item.section.offset + item.section.stored;
    complete["sections"].push_back(manifest::write<manifest::Section>(item.section));
  };
  complete["sections"] = json::array();
  for (Pending &item : pending)
    place(item);
  if (key) {
    auto message = signedMessage(complete);
    if (!message)
      return message.error();
    PublicKey signer = publicKey(*key);
    Signature signature = sign(*message, *key);
    std::string contents(signer.begin(), signer.end());
    contents.append(signature.begin(), signature.end());
    std::string name = "signature";
    for (int number = 2; has(name); ++number)
      name = "signature/" + std::to_string(number);
    if (Status status = add(name, "signature", std::move(contents), Compression::None, false); !status)
      return status.error();
    place(pending.back());
  }

  auto text = writeCanonical(complete);
  if (!text)
    return text.error();
  if (text->size() > maxManifestBytes || pending.size() > maxSections)
    return writeError("the manifest is larger than the format allows");
  std::string bytes(headerBytes, '\0');
  std::copy(magic.begin(), magic.end(), bytes.begin());
  putLittleEndian(bytes, 8, majorVersion, 2);
  putLittleEndian(bytes, 10, minorVersion, 2);
  putLittleEndian(bytes, 16, text->size(), 8);
  Sha256 digest = sha256(*text);
  std::copy(digest.begin(), digest.end(), bytes.begin() + 32);
  bytes += *text;
  uint64_t dataStart = alignUp(bytes.size());
  for (const Pending &item : pending) {
    bytes.resize(dataStart + item.section.offset, '\0');
    bytes += item.stored;
  }
  return bytes;
}

} // namespace kpkg::format
