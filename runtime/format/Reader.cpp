// Opens a package: checks its header, manifest and section table completely, and reads sections on demand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Reader.h"
#include "runtime/format/CanonicalJson.h"
#include "runtime/manifest/Read.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <unordered_set>
#include <zstd.h>

namespace kpkg::format {

using nlohmann::json;

static uint64_t littleEndian(std::string_view bytes, size_t offset, size_t count) {
  uint64_t value = 0;
  for (size_t i = count; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

static bool allZero(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char byte) { return byte == 0; });
}

Error Reader::refuse(std::string why) const {
  return {KPKG_ERROR_FORMAT, "'" + fileName + "' is refused: " + why, {}, {}, {}};
}

Result<Reader> Reader::open(const std::string &path) {
  auto file = WholeFile::open(path);
  if (!file)
    return file.error();
  std::string_view bytes = file->bytes();
  return make(std::move(*file), bytes, path);
}

Result<Reader> Reader::fromMemory(std::string_view bytes, std::string name) { return make({}, bytes, std::move(name)); }

Result<Reader> Reader::make(WholeFile file, std::string_view bytes, std::string name) {
  Reader reader;
  reader.fileName = std::move(name);
  reader.file = std::move(file);
  reader.bytes = bytes;
  if (Status status = reader.readHeader(); !status)
    return status.error();
  if (Status status = reader.readSectionTable(); !status)
    return status.error();
  return reader;
}

Status Reader::readHeader() {
  if (bytes.size() < headerBytes)
    return refuse("it has " + std::to_string(bytes.size()) + " bytes, a package has at least " +
                  std::to_string(headerBytes));
  if (std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return refuse("it is not a kpkg package (wrong magic)");
  uint64_t major = littleEndian(bytes, 8, 2);
  minorOfFile = uint16_t(littleEndian(bytes, 10, 2));
  if (major != majorVersion)
    return refuse("its format version is " + std::to_string(major) + "." + std::to_string(minorOfFile) +
                  ", this runtime reads " + std::to_string(majorVersion) + ".x; " +
                  (major > majorVersion ? "update kpkg" : "rebuild the package"));
  if (!allZero(bytes.substr(12, 4)) || !allZero(bytes.substr(24, 8)))
    return refuse("reserved bytes of the header are not zero");
  uint64_t length = littleEndian(bytes, 16, 8);
  if (length > maxManifestBytes)
    return refuse("its manifest has " + std::to_string(length) + " bytes, the limit is " +
                  std::to_string(maxManifestBytes));
  if (length > bytes.size() - headerBytes)
    return refuse("it ends within its manifest (truncated?)");
  text = bytes.substr(headerBytes, length);
  if (std::memcmp(sha256(text).data(), bytes.data() + 32, 32) != 0)
    return refuse("its manifest is damaged (SHA-256 differs from the header's)");

  auto value = parseCanonical(text);
  if (!value)
    return refuse(value.error().message);
  parsed = std::make_shared<const json>(std::move(*value));
  if (!parsed->is_object())
    return refuse("its manifest is no JSON object");
  auto format = parsed->find("format");
  // Compared as text, because the numbers 1 and 1.0 are equal.
  if (format == parsed->end() || format->dump() != json{{"major", major}, {"minor", minorOfFile}}.dump())
    return refuse("the manifest's `format` is not the header's version");
  try {
    if (auto name = manifest::unknownRequirement(*parsed))
      return refuse("it is of format version " + std::to_string(major) + "." + std::to_string(minorOfFile) +
                    " and requires `" + *name + "`, which this runtime of " + std::to_string(majorVersion) + "." +
                    std::to_string(minorVersion) + " does not know; update kpkg or rebuild the package");
  } catch (const manifest::Refusal &refusal) {
    return refuse(refusal.why);
  }
  return {};
}

static std::string versionText(uint16_t minor) { return std::to_string(majorVersion) + "." + std::to_string(minor); }

static bool isPlainName(const std::string &name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
}

Status Reader::readSectionTable() {
  std::vector<manifest::Section> records;
  try {
    records = manifest::readField(*parsed, &manifest::Manifest::sections);
  } catch (const manifest::Refusal &refusal) {
    return refuse(refusal.why);
  }
  // A package without sections ends with its manifest, without padding.
  uint64_t manifestEnd = headerBytes + text.size();
  dataStart = records.empty() ? manifestEnd : alignUp(manifestEnd);
  if (dataStart > bytes.size())
    return refuse("it ends before its first section (truncated?)");
  if (!allZero(bytes.substr(manifestEnd, dataStart - manifestEnd)))
    return refuse("bytes between the manifest and the first section are not zero");
  uint64_t dataBytes = bytes.size() - dataStart, end = 0;

  std::unordered_set<std::string_view> names;
  table.reserve(records.size());
  for (const manifest::Section &record : records) {
    Section section{record, {}};
    if (!isPlainName(section.name) || !isPlainName(section.kind))
      return refuse("section " + std::to_string(table.size()) +
                    " has a name or kind that is empty or has control characters");
    std::string where = "section '" + section.name + "'";
    if (!names.insert(record.name).second)
      return refuse(where + " is listed twice");
    if (!fromHex(section.sha256, section.digest.data(), section.digest.size()))
      return refuse(where + ": `sha256` is not 64 lower-case hexadecimal digits");
    const SectionKind *known = findKind(section.kind);
    if (known && section.size > known->maxBytes)
      return refuse(where + " has " + std::to_string(section.size) + " bytes, the limit of its kind '" + section.kind +
                    "' is " + std::to_string(known->maxBytes));
    if (!known && section.required)
      return refuse(where + " is required and of kind '" + section.kind + "', which this runtime of " +
                    versionText(minorVersion) + " does not know; the file is of " + versionText(minorOfFile) +
                    ": update kpkg or rebuild the package");
    if (section.compression == Compression::None && section.stored != section.size)
      return refuse(where + " is not compressed but `stored` differs from `size`");
    if (section.compression == Compression::Zstd && section.size > maxExpanded(section.stored))
      return refuse(where + " has " + std::to_string(section.size) + " bytes in " + std::to_string(section.stored) +
                    ", which may stand for at most " + std::to_string(maxExpanded(section.stored)));
    if (section.kind == "signature" && (section.size != signatureBytes || section.stored != signatureBytes))
      return refuse(where + " is no Ed25519 key and signature: these have " + std::to_string(signatureBytes) +
                    " bytes, not compressed");
    uint64_t start = alignUp(end);
    if (section.offset != start)
      return refuse(where + " starts at offset " + std::to_string(section.offset) + ", expected " +
                    std::to_string(start) + " (sections follow each other without hole or overlap)");
    if (start > dataBytes || section.stored > dataBytes - start)
      return refuse("it ends within " + where + " (truncated?)");
    if (!allZero(bytes.substr(dataStart + end, start - end)))
      return refuse("padding before " + where + " is not zero");
    end = start + section.stored;
    table.push_back(std::move(section));
  }
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].kind != "signature" && findKind(table[i].kind))
      usable.emplace(table[i].name, i);
  if (end != dataBytes)
    return refuse(std::to_string(dataBytes - end) + " bytes follow the last section");
  return {};
}

const Section *Reader::find(std::string_view name) const {
  auto found = usable.find(name);
  return found == usable.end() ? nullptr : &table[found->second];
}

std::string_view Reader::stored(const Section &section) const {
  return bytes.substr(dataStart + section.offset, section.stored);
}

Status Reader::checkDigest(const Section &section) const {
  if (sha256(stored(section)) != section.digest)
    return refuse("section '" + section.name + "' is damaged (SHA-256 differs from the manifest's)");
  return {};
}

Result<Contents> Reader::read(const Section &section, bool withDigest) const {
  if (withDigest)
    if (Status status = checkDigest(section); !status)
      return status.error();
  std::string_view raw = stored(section);
  if (section.compression == Compression::None)
    return Contents{raw, nullptr};
  unsigned long long announced = ZSTD_getFrameContentSize(raw.data(), raw.size());
  if (announced != section.size)
    return refuse("section '" + section.name + "': the zstd frame does not announce `size` bytes");
  std::shared_ptr<char[]> memory(new (std::nothrow) char[section.size ? section.size : 1]);
  if (!memory)
    return Error{KPKG_ERROR_MEMORY, "no memory for section '" + section.name + "' of '" + fileName + "'", {}, {}, {}};
  size_t written = ZSTD_decompress(memory.get(), section.size, raw.data(), raw.size());
  if (ZSTD_isError(written))
    return refuse("section '" + section.name + "' does not decompress: " + ZSTD_getErrorName(written));
  if (written != section.size)
    return refuse("section '" + section.name + "' decompresses to " + std::to_string(written) + " bytes, not `size`");
  std::string_view contents(memory.get(), section.size);
  return Contents{contents, std::shared_ptr<const void>(memory, memory.get())};
}

Result<std::string> signedMessage(const json &manifest) {
  json rest = manifest;
  json sections = json::array();
  for (const json &section : manifest.at("sections"))
    if (section.at("kind") != "signature")
      sections.push_back(section);
  rest["sections"] = std::move(sections);
  auto text = writeCanonical(rest);
  if (!text)
    return text.error();
  return "kpkg package signature 1\n" + *text;
}

Status Reader::checkSections() const {
  for (const Section &section : table)
    if (auto contents = read(section, /*checkDigest=*/true); !contents)
      return contents.error();
  return {};
}

Result<std::vector<Signer>> Reader::signers() const {
  auto message = signedMessage(*parsed);
  if (!message)
    return message.error();
  std::vector<Signer> all;
  for (const Section &section : table) {
    if (section.kind != "signature")
      continue;
    auto contents = read(section, /*checkDigest=*/true);
    if (!contents)
      return contents.error();
    Signer signer;
    Signature signature;
    std::memcpy(signer.key.data(), contents->bytes.data(), signer.key.size());
    std::memcpy(signature.data(), contents->bytes.data() + signer.key.size(), signature.size());
    signer.isValid = verify(*message, signature, signer.key);
    all.push_back(signer);
  }
  return all;
}

Status Reader::checkSignature(const std::vector<PublicKey> &keys) const {
  auto refusal = [&](const std::string &why) {
    return Error{KPKG_ERROR_TRUST, "'" + fileName + "' is not trusted: " + why, {}, {}, {}};
  };
  auto found = signers();
  if (!found)
    return found.error();
  const Signer *wrong = nullptr;
  for (const Signer &signer : *found) {
    if (std::find(keys.begin(), keys.end(), signer.key) == keys.end())
      continue;
    if (signer.isValid)
      return {};
    wrong = &signer;
  }
  if (wrong)
    return refusal("its signature by " + toHex(wrong->key.data(), wrong->key.size()) + " is not valid");
  return refusal(found->empty() ? "it carries no signature" : "no signature is by a trusted key");
}

} // namespace kpkg::format
