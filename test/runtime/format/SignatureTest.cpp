// Tests signatures: which bytes they cover, and key files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "runtime/format/Rewrite.h"
#include "test/runtime/format/SamplePackages.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

using namespace kpkg;
using namespace kpkg::test;
using format::Compression;
using format::Reader;
using format::Writer;
using nlohmann::json;
using testing::HasSubstr;

namespace {

const format::SecretKey key = format::secretKeyFromSeed({1, 2, 3}), other = format::secretKeyFromSeed({4});

Reader openValid(const std::string &bytes) { return std::move(Reader::fromMemory(bytes, "sample").value()); }

/// Runs all checks of kpkg verify --signed-by that precede loading code; empty if the package is trusted.
std::string refusal(const std::string &bytes) {
  auto reader = Reader::fromMemory(bytes, "sample");
  if (!reader)
    return reader.error().message;
  if (Status status = reader->checkSignature({format::publicKey(key)}); !status)
    return status.error().message;
  Status status = reader->checkSections();
  return status ? "" : status.error().message;
}

/// Returns a small package with tables of several entries and a compressed section.
std::string signedPackage() {
  Writer writer;
  writer.add("plan/a", "plan", "program", Compression::None).value();
  writer.add("source/a", "source", std::string(300, 's'), Compression::Zstd, false).value();
  writer.add("tuning", "tuning", R"({"format":1,"rows":[]})", Compression::None, false).value();
  json manifest = {{"ops", {{{"name", "a::b"}}, {{"name", "a::c"}}}},
                   {"instances", {{{"symbol", "x"}, {"target", "x86-64-v3"}}, {{"symbol", "y"}, {"target", "sm_90a"}}}},
                   {"kernels", {{{"name", "k"}}, {{"name", "l"}}}}};
  return writer.finish(manifest, &key).value();
}

/// Returns the cause with which a changed byte of the file must be refused.
std::string causeAt(size_t offset, const Reader &reader, size_t dataStart) {
  size_t manifestEnd = format::headerBytes + reader.manifestText().size();
  if (offset < 8)
    return "wrong magic";
  if (offset < 10)
    return "its format version is";
  if (offset < 12)
    return "`format` is not the header's version";
  if (offset < 16 || (offset >= 24 && offset < 32))
    return "reserved bytes of the header are not zero";
  if (offset < 24)
    return "its manifest"; // it is too long or damaged, because its bounds changed
  if (offset < manifestEnd)
    return "its manifest is damaged";
  for (const format::Section &section : reader.sections()) {
    size_t start = dataStart + section.offset;
    if (offset >= start && offset < start + section.stored)
      return "section '" + section.name + "' is damaged";
  }
  return "not zero"; // padding
}

json &sectionNamed(json &manifest, const std::string &name) {
  for (json &section : manifest["sections"])
    if (section["name"] == name)
      return section;
  throw std::runtime_error("no section " + name);
}

} // namespace

TEST(Signature, TrustsOnlyTheGivenKeys) {
  format::SecretKey key = format::secretKeyFromSeed({1, 2, 3}), other = format::secretKeyFromSeed({4});
  Writer writer;
  ASSERT_TRUE(writer.add("docs/a", "docs", "text"));
  std::string bytes = writer.finish({{"ops", nlohmann::json::array()}}, &key).value();
  Reader reader = openValid(bytes);
  EXPECT_TRUE(reader.checkSignature({format::publicKey(other), format::publicKey(key)}));
  EXPECT_EQ(reader.checkSignature({format::publicKey(other)}).error().status, KPKG_ERROR_TRUST);
  std::string unsignedBytes = validPackage();
  EXPECT_THAT(openValid(unsignedBytes).checkSignature({format::publicKey(key)}).error().message,
              HasSubstr("carries no signature"));
}

TEST(Signature, FindsEveryChangedByte) {
  const std::string bytes = signedPackage();
  ASSERT_EQ(refusal(bytes), "");
  Reader reader = openValid(bytes);
  size_t dataStart = bytes.size() - dataOf(bytes).size();
  for (size_t offset = 0; offset < bytes.size(); ++offset)
    for (unsigned char flip : {0x01, 0x20, 0x80, 0xff}) {
      std::string changed = bytes;
      changed[offset] = char(changed[offset] ^ flip);
      EXPECT_THAT(refusal(changed), HasSubstr(causeAt(offset, reader, dataStart))) << "byte " << offset;
    }
}

TEST(Signature, FindsChangesWhoseDigestsAreRight) {
  // An attacker who changes a package makes the digests match.
  const std::string bytes = signedPackage(), data = dataOf(bytes);
  const json manifest = manifestOf(bytes);
  const std::string text = manifest.dump(), message = format::signedMessage(manifest).value();
  for (size_t offset = 0; offset < text.size(); ++offset)
    for (char flip : {1, 2, 32}) {
      std::string changed = text;
      changed[offset] = char(changed[offset] ^ flip);
      std::string file = assemble(changed, data);
      auto reader = Reader::fromMemory(file, "sample");
      // The entry of the signature's own section is not signed, and nothing reads it.
      if (reader && format::signedMessage(reader->manifest()).value() == message)
        EXPECT_EQ(reader->find("signature"), nullptr);
      else
        EXPECT_NE(refusal(file), "") << "byte " << offset << " of the manifest";
    }
  for (const json &section : manifest["sections"])
    for (size_t i = 0; i < section["stored"]; ++i) {
      std::string changedData = data;
      size_t start = section["offset"], stored = section["stored"];
      changedData[start + i] = char(changedData[start + i] ^ 1);
      format::Sha256 digest = format::sha256(std::string_view(changedData).substr(start, stored));
      json changed = manifest;
      sectionNamed(changed, section["name"])["sha256"] = format::toHex(digest.data(), digest.size());
      bool isKey = section["kind"] == "signature" && i < 32;
      EXPECT_THAT(refusal(assemble(changed.dump(), changedData)),
                  HasSubstr(isKey ? "no signature is by a trusted key" : "is not valid"))
          << section["name"] << " " << i;
    }
}

TEST(Signature, CoversOrderAndContentsOfTables) {
  const std::string bytes = signedPackage(), data = dataOf(bytes);
  auto change = [&](auto edit) {
    json manifest = manifestOf(bytes);
    edit(manifest);
    return refusal(assemble(manifest.dump(), data));
  };
  for (const char *table : {"ops", "instances", "kernels"}) {
    EXPECT_THAT(change([&](json &m) { std::swap(m[table][0], m[table][1]); }), HasSubstr("is not valid")) << table;
    EXPECT_THAT(change([&](json &m) { m[table].erase(0); }), HasSubstr("is not valid")) << table;
    EXPECT_THAT(change([&](json &m) { m[table].push_back(m[table][0]); }), HasSubstr("is not valid")) << table;
    EXPECT_THAT(change([&](json &m) { m.erase(table); }), HasSubstr("is not valid")) << table;
  }
  EXPECT_THAT(change([&](json &m) { m["later"] = 1; }), HasSubstr("is not valid"));
  EXPECT_THAT(change([&](json &m) { m["sections"][0]["required"] = false; }), HasSubstr("is not valid"));
  EXPECT_THAT(change([&](json &m) { std::swap(m["sections"][0]["name"], m["sections"][1]["name"]); }),
              HasSubstr("is not valid"));

  // Another tuning table, or one more section, under the old signature.
  Reader reader = openValid(bytes);
  for (bool isReplaced : {true, false}) {
    Writer writer;
    for (const format::Section &section : reader.sections())
      if (section.name != "tuning" || !isReplaced) {
        ASSERT_TRUE(writer.copy(reader, section));
      }
    ASSERT_TRUE(writer.add(isReplaced ? "tuning" : "docs/b", isReplaced ? "tuning" : "docs", "{}", Compression::None,
                           /*required=*/false));
    EXPECT_THAT(refusal(writer.finish(reader.manifest()).value()), HasSubstr("is not valid"));
  }
}

TEST(Signature, SeveralSignersStay) {
  std::string bytes = signedPackage();
  std::string both = format::withSignature(openValid(bytes), other).value();
  Reader reader = openValid(both);
  EXPECT_TRUE(reader.checkSignature({format::publicKey(key)}));
  EXPECT_TRUE(reader.checkSignature({format::publicKey(other)}));
  // A second signature by the same key gives the same signatures in another order.
  Reader again = openValid(format::withSignature(reader, key).value());
  ASSERT_EQ(again.signers().value().size(), 2u);
  EXPECT_EQ(again.signers().value()[1].key, format::publicKey(key));
  EXPECT_EQ(format::withSignature(openValid(bytes), key).value(), bytes);
}

TEST(Signature, IsNotGivenToDamage) {
  std::string bytes = validPackage();
  bytes.back() ^= 1;
  EXPECT_THAT(format::withSignature(openValid(bytes), key).error().message, HasSubstr("section 'docs/b' is damaged"));
}

TEST(Signature, IsNotGivenToLaterVersions) {
  json manifest = manifestOf(validPackage());
  manifest["format"]["minor"] = 3;
  std::string bytes = assemble(manifest.dump(), dataOf(validPackage()));
  bytes[10] = 3;
  EXPECT_THAT(format::withSignature(openValid(bytes), key).error().message,
              HasSubstr("is of format version 1.3, this kpkg writes 1.2; update kpkg"));
}

TEST(KeyFiles, AreWrittenOnce) {
  std::string name = testing::TempDir() + "kpkg-key-files-test", secret = name + ".key", open = name + ".pub";
  std::filesystem::remove(secret);
  std::filesystem::remove(open);
  ASSERT_TRUE(format::writeKeyFiles(name, key));
  struct stat status = {};
  ASSERT_EQ(::stat(secret.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_EQ(format::readSecretKey(secret).value(), key);
  EXPECT_EQ(format::readPublicKey(open).value(), format::publicKey(key));
  EXPECT_EQ(format::readPublicKey(format::keyText(format::publicKey(key))).value(), format::publicKey(key));

  // No file is replaced, and no pair is left incomplete.
  EXPECT_THAT(format::writeKeyFiles(name, other).error().message, HasSubstr("File exists; keys are never replaced"));
  std::filesystem::remove(open);
  EXPECT_THAT(format::writeKeyFiles(name, other).error().message, HasSubstr("kpkg-key-files-test.key'"));
  EXPECT_FALSE(std::filesystem::exists(open));
  EXPECT_EQ(format::readSecretKey(secret).value(), key);

  EXPECT_THAT(format::readPublicKey(secret).error().message, HasSubstr("holds a secret key"));
  std::ofstream(open) << format::keyText(format::publicKey(key)) << "\n";
  EXPECT_THAT(format::readSecretKey(open).error().message, HasSubstr("no secret key of kpkg keygen, but a public key"));
  std::ofstream(open) << "nonsense\n";
  EXPECT_THAT(format::readPublicKey(open).error().message, HasSubstr("holds no Ed25519 public key"));
  EXPECT_THAT(format::readPublicKey("nowhere").error().message, HasSubstr("'nowhere' is neither"));
  std::filesystem::remove(secret);
  std::filesystem::remove(open);
}
