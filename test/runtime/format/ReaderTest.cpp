// Tests the container: round trips, deterministic bytes, and malformed files, which are refused with a cause.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Reader.h"
#include "runtime/format/OutputFile.h"
#include "runtime/format/Writer.h"
#include "test/runtime/format/SamplePackages.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg;
using namespace kpkg::test;
using format::Compression;
using format::Reader;
using format::Writer;
using testing::HasSubstr;

static Reader openValid(const std::string &bytes) { return std::move(Reader::fromMemory(bytes, "sample").value()); }

TEST(Reader, ReadsBackWhatWasWritten) {
  std::string bytes = validPackage();
  Reader reader = openValid(bytes);
  ASSERT_EQ(reader.sections().size(), 2u);
  EXPECT_EQ(reader.manifest().at("producer").at("name"), "test");
  const format::Section *a = reader.find("docs/a"), *b = reader.find("docs/b");
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->compression, Compression::None);
  EXPECT_EQ(b->compression, Compression::Zstd);
  EXPECT_EQ(reader.read(*a, true).value().bytes, "short");
  EXPECT_EQ(reader.read(*b, true).value().bytes, std::string(1000, 'b'));
  EXPECT_EQ(reader.find("docs/c"), nullptr);
}

TEST(Reader, ReadsFiles) {
  std::string path = testing::TempDir() + "kpkg-reader-test.kpkg";
  ASSERT_TRUE(format::writeFile(path, validPackage()));
  {
    auto reader = Reader::open(path);
    ASSERT_TRUE(reader);
    Reader moved = std::move(*reader);
    EXPECT_EQ(moved.read(*moved.find("docs/a"), true).value().bytes, "short");
  }
  std::filesystem::remove(path);
  auto missing = Reader::open(path);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().status, KPKG_ERROR_FILE);
  EXPECT_THAT(missing.error().message, HasSubstr("No such file"));
  EXPECT_THAT(Reader::open(testing::TempDir()).error().message, HasSubstr("not a regular file"));
}

TEST(Reader, IsNotHarmedByFilesThatShrinkOrChange) {
  std::string path = testing::TempDir() + "kpkg-reader-shrinks.kpkg";
  ASSERT_TRUE(format::writeFile(path, validPackage()));
  auto reader = Reader::open(path);
  ASSERT_TRUE(reader);
  std::ofstream(path, std::ios::in | std::ios::out) << std::string(64, 'x');
  std::filesystem::resize_file(path, 64);
  EXPECT_EQ(reader->read(*reader->find("docs/b"), true).value().bytes, std::string(1000, 'b'));
  std::filesystem::remove(path);
}

TEST(Reader, TakesLongLists) {
  // With quadratic cost, this would take minutes.
  nlohmann::json manifest = manifestOf(validPackage());
  manifest["extra"] = nlohmann::json::array();
  for (int i = 0; i < 200000; ++i)
    manifest["extra"].push_back(nlohmann::json::object());
  std::string bytes = assemble(manifest.dump(), dataOf(validPackage()));
  EXPECT_EQ(openValid(bytes).manifest().at("extra").size(), 200000u);
}

TEST(Writer, IsDeterministic) { EXPECT_EQ(validPackage(), validPackage()); }

TEST(Writer, PackageWithoutSections) {
  std::string bytes = Writer().finish({{"ops", nlohmann::json::array()}}).value();
  EXPECT_TRUE(openValid(bytes).sections().empty());
}

TEST(Writer, RefusesNumbersThatJsonCannotHold) {
  EXPECT_THAT(Writer().finish({{"x", std::numeric_limits<double>::infinity()}}).error().message,
              HasSubstr("not finite"));
}

TEST(Writer, RefusesSectionTwice) {
  Writer writer;
  ASSERT_TRUE(writer.add("a", "docs", "1"));
  EXPECT_THAT(writer.add("a", "docs", "2").error().message, HasSubstr("added twice"));
}

TEST(Reader, SkipsUnknownOptionalKinds) {
  Writer writer;
  ASSERT_TRUE(writer.add("later", "fpga", "bits", Compression::None, /*required=*/false));
  std::string bytes = writer.finish(nlohmann::json::object()).value();
  auto reader = Reader::fromMemory(bytes, "sample");
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->find("later"), nullptr);
}

TEST(Reader, DoesNotFindSignatures) {
  // Signatures are not signed themselves: an attacker could add one that replaces a section of the same name.
  Writer writer;
  ASSERT_TRUE(writer.add("tuning", "signature", std::string(96, 's'), Compression::None, /*required=*/false));
  std::string bytes = writer.finish(nlohmann::json::object()).value();
  EXPECT_EQ(openValid(bytes).find("tuning"), nullptr);
}

TEST(Writer, KeepsWhatReadersExpand) {
  Writer writer;
  std::string zeros(size_t(8) << 20, '\0');
  ASSERT_TRUE(writer.add("ir/zeros", "ir", zeros, Compression::Zstd, /*required=*/false));
  std::string bytes = writer.finish(nlohmann::json::object()).value();
  Reader reader = openValid(bytes);
  EXPECT_EQ(reader.sections()[0].compression, Compression::None);
  EXPECT_EQ(reader.read(reader.sections()[0], true).value().bytes, zeros);
  EXPECT_THAT(writer.add("plan/x", "plan", std::string((16 << 20) + 1, 'x')).error().message,
              HasSubstr("of kind 'plan' is larger than the limit of 16777216 bytes"));
}

TEST(Reader, AcceptsLaterMinorVersions) {
  std::string valid = validPackage();
  nlohmann::json manifest = manifestOf(valid);
  manifest["format"]["minor"] = 3;
  manifest["something new"] = {{"x", 1}};
  std::string bytes = assemble(manifest.dump(), dataOf(valid));
  bytes[10] = 3;
  EXPECT_EQ(openValid(bytes).minor(), 3);
}

TEST(Reader, AcceptsRequirementsThatItKnows) {
  std::string valid = validPackage();
  nlohmann::json manifest = manifestOf(valid);
  manifest["requires"] = {"launch.counters", "op.torch", "manifest.requires"};
  openValid(assemble(manifest.dump(), dataOf(valid)));
}

TEST(Reader, FindsDamageInSections) {
  std::string bytes = validPackage();
  bytes.back() ^= 1;
  Reader reader = openValid(bytes);
  auto damaged = reader.read(*reader.find("docs/b"), true);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().status, KPKG_ERROR_FORMAT);
  EXPECT_THAT(damaged.error().message, HasSubstr("section 'docs/b' is damaged"));
  EXPECT_TRUE(reader.read(*reader.find("docs/a"), true));
}

TEST(Reader, ChecksThatZstdGivesTheAnnouncedSize) {
  std::string valid = validPackage();
  nlohmann::json manifest = manifestOf(valid);
  manifest["sections"][1]["size"] = 1001;
  std::string bytes = assemble(manifest.dump(), dataOf(valid));
  Reader reader = openValid(bytes);
  EXPECT_THAT(reader.read(*reader.find("docs/b"), true).error().message, HasSubstr("does not announce `size` bytes"));
}

class MalformedFile : public testing::TestWithParam<Malformed> {};

TEST_P(MalformedFile, IsRefusedWithItsCause) {
  auto reader = Reader::fromMemory(GetParam().bytes, "sample");
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().status, KPKG_ERROR_FORMAT);
  EXPECT_THAT(reader.error().message, HasSubstr("'sample' is refused: "));
  EXPECT_THAT(reader.error().message, HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(Corpus, MalformedFile, testing::ValuesIn(malformedPackages()), [](const auto &info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});
