// Makes a small valid package, and malformed packages with the reader's error for each.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/format/SamplePackages.h"

#include "runtime/format/Digest.h"
#include "runtime/format/Writer.h"

#include <functional>

namespace kpkg::test {

using format::Compression;
using nlohmann::json;

std::string validPackage() {
  format::Writer writer;
  writer.add("docs/a", "docs", "short", Compression::None, false).value();
  writer.add("docs/b", "docs", std::string(1000, 'b'), Compression::Zstd, false).value();
  return writer.finish({{"producer", {{"name", "test"}}}}).value();
}

static uint64_t manifestLength(const std::string &package) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | uint8_t(package[16 + size_t(i)]);
  return length;
}

json manifestOf(const std::string &package) {
  return json::parse(package.substr(format::headerBytes, manifestLength(package)));
}

std::string dataOf(const std::string &package) {
  return package.substr(format::alignUp(format::headerBytes + manifestLength(package)));
}

std::string assemble(const std::string &manifest, const std::string &data) {
  std::string bytes(format::headerBytes, '\0');
  std::copy(format::magic.begin(), format::magic.end(), bytes.begin());
  bytes[8] = char(format::majorVersion);
  bytes[10] = char(format::minorVersion);
  for (size_t i = 0; i < 8; ++i)
    bytes[16 + i] = char(manifest.size() >> (8 * i) & 0xff);
  format::Sha256 digest = format::sha256(manifest);
  std::copy(digest.begin(), digest.end(), bytes.begin() + 32);
  bytes += manifest;
  if (!data.empty())
    bytes.resize(format::alignUp(bytes.size()), '\0');
  return bytes + data;
}

/// Adds packages with one error in an entry of `sections`.
static void
addMalformedSections(const std::function<void(std::string, std::string, std::function<void(json &)>)> &section) {
  section("name-control", "section 1 has a name or kind that is empty", [](json &entry) { entry["name"] = "a\nb"; });
  section("name-long", "expected a text of at most 512 bytes",
          [](json &entry) { entry["name"] = std::string(600, 'n'); });
  for (const char *field : {"kind", "offset", "size", "stored", "compression", "sha256", "required"})
    section(std::string("lacks-") + field, std::string("sections[1] has no `") + field + "`",
            [&](json &entry) { entry.erase(field); });
  section("size-negative", "sections[1].size is -1, expected an integer from 0 to 2147483648",
          [](json &entry) { entry["size"] = -1; });
  section("size-float", "sections[1].size is 1.5, expected an integer", [](json &entry) { entry["size"] = 1.5; });
  section("size-limit", "expected an integer from 0 to 2147483648",
          [](json &entry) { entry["size"] = uint64_t(1) << 40; });
  section("size-of-plan", "has 16777217 bytes, the limit of its kind 'plan' is 16777216", [](json &entry) {
    entry["kind"] = "plan";
    entry["size"] = (16 << 20) + 1;
  });
  section("size-of-expanded", "which may stand for at most", [](json &entry) { entry["size"] = 60 << 20; });
  section("signature-long", "the limit of its kind 'signature' is 96",
          [](json &entry) { entry["kind"] = "signature"; });
  section("signature-compressed", "is no Ed25519 key and signature: these have 96 bytes", [](json &entry) {
    entry["kind"] = "signature";
    entry["size"] = 96;
  });
  section("stored-overflow", "sections[1].stored is 18446744073709551615, expected",
          [](json &entry) { entry["stored"] = ~uint64_t(0); });
  section("stored-past-end", "ends within section", [](json &entry) { entry["stored"] = 100000; });
  section("stored-differs", "`stored` differs from `size`", [](json &entry) { entry["compression"] = "none"; });
  section("digest-short", "`sha256` is not 64", [](json &entry) { entry["sha256"] = "00"; });
  section("digest-case", "`sha256` is not 64", [](json &entry) { entry["sha256"] = std::string(64, 'A'); });
  section("compression-unknown", "sections[1].compression is \"lzma\", expected one of none, zstd",
          [](json &entry) { entry["compression"] = "lzma"; });
  section("required-unknown-kind",
          "of kind 'fpga', which this runtime of 1.2 does not know; the file is of 1.2: update", [](json &entry) {
            entry["kind"] = "fpga";
            entry["required"] = true;
          });
  section("overlap", "starts at offset 0, expected 64", [](json &entry) { entry["offset"] = 0; });
  section("hole", "starts at offset 128, expected 64", [](json &entry) { entry["offset"] = 128; });
}

std::vector<Malformed> malformedPackages() {
  const std::string valid = validPackage();
  const std::string data = dataOf(valid);
  std::vector<Malformed> all;
  auto file = [&](std::string name, std::string message, std::function<void(std::string &)> change) {
    std::string bytes = valid;
    change(bytes);
    all.push_back({std::move(name), std::move(bytes), std::move(message)});
  };
  auto manifest = [&](std::string name, std::string message, std::function<void(json &)> change) {
    json value = manifestOf(valid);
    change(value);
    all.push_back({std::move(name), assemble(value.dump(), data), std::move(message)});
  };
  auto text = [&](std::string name, std::string message, std::string manifestText) {
    all.push_back({std::move(name), assemble(manifestText, data), std::move(message)});
  };
  auto section = [&](std::string name, std::string message, std::function<void(json &)> change) {
    manifest(std::move(name), std::move(message), [&](json &value) { change(value["sections"][1]); });
  };

  file("empty", "it has 0 bytes", [](std::string &bytes) { bytes.clear(); });
  file("short-header", "at least 64", [](std::string &bytes) { bytes.resize(63); });
  file("wrong-magic", "wrong magic", [](std::string &bytes) { bytes[1] = 'k'; });
  file("text-mode-copy", "wrong magic", [](std::string &bytes) { bytes.erase(5, 1); });
  file("newer-major", "its format version is 2.2, this runtime reads 1.x; update kpkg",
       [](std::string &bytes) { bytes[8] = 2; });
  file("older-major", "rebuild the package", [](std::string &bytes) { bytes[8] = 0; });
  file("reserved-bytes", "reserved bytes", [](std::string &bytes) { bytes[13] = 1; });
  file("huge-manifest", "the limit is", [](std::string &bytes) { bytes[22] = 1; });
  file("truncated-manifest", "ends within its manifest", [](std::string &bytes) { bytes.resize(100); });
  file("damaged-manifest", "its manifest is damaged", [](std::string &bytes) { bytes[80] ^= 1; });
  file("minor-differs", "not the header's version", [](std::string &bytes) { bytes[10] = 7; });
  file("truncated-data", "ends within section 'docs/b'", [](std::string &bytes) { bytes.pop_back(); });
  file("no-data", "ends before its first section",
       [&](std::string &bytes) { bytes.resize(format::headerBytes + manifestLength(bytes)); });
  file("trailing-bytes", "1 bytes follow the last section", [](std::string &bytes) { bytes += '\0'; });
  file("manifest-padding", "between the manifest and the first section are not zero",
       [&](std::string &bytes) { bytes[bytes.size() - data.size() - 1] = 1; });
  file("section-padding", "padding before section 'docs/b' is not zero",
       [&](std::string &bytes) { bytes[bytes.size() - data.size() + 63] = 1; });

  text("not-json", "is not JSON", "{");
  text("no-object", "no JSON object", "[]");
  text("white-space", "not canonical JSON (sorted keys, no white space) at byte 1", "{ }");
  text("unsorted-keys", "not canonical JSON", R"({"b":1,"a":2})");
  text("key-twice", "has the key 'a' twice", R"({"a":1,"a":1})");
  text("key-twice-inside", "has the key 'x' twice", R"({"a":[{"x":1,"y":2,"x":1}]})");
  text("number-spelling", "not canonical JSON", R"({"a":1e0})");
  text("number-too-large", "is not JSON", R"({"a":1e999})");
  text("deep", "nested deeper than 32", std::string(100000, '[') + std::string(100000, ']'));
  text("deep-by-one", "nested deeper than 32", R"({"a":)" + std::string(32, '[') + std::string(32, ']') + "}");
  text("bad-utf8", "is not JSON", "{\"a\":\"\xff\"}");
  text("no-format", "`format` is not the header's version", R"({"sections":[]})");
  text("format-of-floats", "`format` is not the header's version",
       R"({"format":{"major":1.0,"minor":0},"sections":[]})");
  text("no-sections", "the manifest has no `sections`",
       R"({"format":{"major":1,"minor":)" + std::to_string(format::minorVersion) + "}}");
  manifest("sections-no-list", "sections is 3, expected a list of at most 65536 items",
           [](json &value) { value["sections"] = 3; });
  manifest("section-no-object", "sections[0] is \"x\", expected an object",
           [](json &value) { value["sections"][0] = "x"; });
  manifest("section-twice", "section 'docs/a' is listed twice",
           [](json &value) { value["sections"][1]["name"] = "docs/a"; });

  manifest(
      "requires-unknown-field",
      "it is of format version 1.2 and requires `launch.sparse`, which this runtime of 1.2 does not know; update kpkg",
      [](json &value) { value["requires"] = {"launch.threads", "launch.sparse"}; });
  manifest("requires-unknown-record", "requires `threads`, which",
           [](json &value) { value["requires"] = {"threads"}; });
  manifest("requires-no-list", "requires is \"launch\", expected a list of at most 4096 items",
           [](json &value) { value["requires"] = "launch"; });
  manifest("requires-no-text", "requires[0] is 1, expected a text of at most 4096 bytes",
           [](json &value) { value["requires"] = {1}; });

  addMalformedSections(section);
  return all;
}

} // namespace kpkg::test
