// Tests source files and positions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/source/Source.h"
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace kpkg::compiler;

TEST(Source, CountsLinesAndCodePoints) {
  SourceManager sources;
  const SourceFile &file = sources.add("a.k", "ab\nαβγ = 1\n\nlast");
  auto at = [&](uint32_t offset) {
    LineColumn place = file.lineColumn(offset);
    return std::pair(place.line, place.column);
  };
  EXPECT_EQ(at(0), std::pair(1u, 1u));
  EXPECT_EQ(at(2), std::pair(1u, 3u)); // a newline belongs to the line that it ends
  EXPECT_EQ(at(3), std::pair(2u, 1u));
  EXPECT_EQ(at(7), std::pair(2u, 3u)); // two characters of two bytes precede γ
  EXPECT_EQ(at(1000), std::pair(4u, 5u));
  EXPECT_EQ(file.line(2), "αβγ = 1");
  EXPECT_EQ(file.line(3), "");
  EXPECT_EQ(file.line(4), "last");
  EXPECT_EQ(file.line(5), "");
  EXPECT_EQ(file.line(0), "");
}

TEST(Source, EveryLineEndCounts) {
  SourceManager sources;
  const SourceFile &file = sources.add("a.k", "a\r\nb\rc\nd\r\n");
  EXPECT_EQ(file.lineCount(), 5u);
  EXPECT_EQ(file.line(1), "a");
  EXPECT_EQ(file.line(2), "b");
  EXPECT_EQ(file.line(3), "c");
  EXPECT_EQ(file.line(4), "d");
  EXPECT_EQ(file.lineStart(2), 3u);
}

TEST(Source, EmptyFileHasOneLine) {
  SourceManager sources;
  const SourceFile &file = sources.add("a.k", "");
  EXPECT_EQ(file.lineCount(), 1u);
  EXPECT_EQ(file.lineColumn(0).line, 1u);
}

TEST(Source, RangesJoin) {
  SourceRange a{0, 3, 5}, b{0, 8, 9}, other{1, 0, 1};
  EXPECT_EQ(a.to(b), (SourceRange{0, 3, 9}));
  EXPECT_EQ(b.to(a), (SourceRange{0, 3, 9}));
  EXPECT_EQ(SourceRange{}.to(a), a);
  EXPECT_EQ(a.to({}), a);
  EXPECT_EQ(a.to(other), a);
}

TEST(Source, LoadsAFileOnce) {
  std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "kpkg_source_test.k";
  std::ofstream(path) << "def f():\n    pass\n";
  SourceManager sources;
  std::string reason;
  const SourceFile *file = sources.load(path.string(), reason);
  ASSERT_TRUE(file) << reason;
  EXPECT_EQ(file->text(), "def f():\n    pass\n");
  EXPECT_EQ(sources.load(path.string(), reason), file);
  EXPECT_EQ(sources.fileCount(), 1u);
  EXPECT_EQ(sources.describe({file->id(), 9, 10}), path.string() + ":2:1");
  std::filesystem::remove(path);
}

TEST(Source, SaysWhyAFileCannotBeRead) {
  SourceManager sources;
  std::string reason;
  EXPECT_FALSE(sources.load("/nowhere/at/all.k", reason));
  EXPECT_NE(reason.find("o such file"), std::string::npos) << reason;
  EXPECT_FALSE(sources.load(testing::TempDir(), reason));
  EXPECT_EQ(reason, "it is a directory");
}
