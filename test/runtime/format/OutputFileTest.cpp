// Checks that a file is written completely or not at all, for any kind of output.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/OutputFile.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>

using namespace kpkg;
using format::writeFile;
using testing::HasSubstr;

namespace {

class OutputFile : public testing::Test {
protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "kpkg-output-XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string at(const std::string &name) const { return (folder / name).string(); }
  static std::string contents(const std::string &path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  size_t count() const {
    return size_t(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()));
  }

  std::filesystem::path folder;
};

TEST_F(OutputFile, IsReplacedWhole) {
  ASSERT_TRUE(writeFile(at("a"), "first"));
  ASSERT_TRUE(writeFile(at("a"), "second, which is longer"));
  EXPECT_EQ(contents(at("a")), "second, which is longer");
  ASSERT_TRUE(writeFile(at(std::string(255, 'n')), "a long name"));
  EXPECT_EQ(count(), 2u);
  mode_t mask = ::umask(027);
  ASSERT_TRUE(writeFile(at("private"), "x"));
  ::umask(mask);
  EXPECT_EQ(std::filesystem::status(at("private")).permissions(), std::filesystem::perms(0640));
}

/// A limit on the file size fails like a full disk.
TEST_F(OutputFile, AFullDiskLeavesTheOldFile) {
  std::string old = "what was there";
  ASSERT_TRUE(writeFile(at("a"), old));
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto handler = std::signal(SIGXFSZ, SIG_IGN);
  for (rlim_t bytes : {0, 1, 4095, 4096, 9999}) {
    rlimit limit = {bytes, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    Status status = writeFile(at("a"), std::string(10000, 'x'));
    ::setrlimit(RLIMIT_FSIZE, &before);
    ASSERT_FALSE(status) << bytes;
    EXPECT_EQ(status.error().status, KPKG_ERROR_FILE);
    EXPECT_EQ(status.error().message, "cannot write '" + at("a") + "': File too large");
    EXPECT_EQ(contents(at("a")), old);
    EXPECT_EQ(count(), 1u);
  }
  std::signal(SIGXFSZ, handler);
}

TEST_F(OutputFile, ADeviceIsWrittenTo) {
  ASSERT_TRUE(writeFile("/dev/null", "gone"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  Status full = writeFile("/dev/full", "no room");
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().message, "cannot write '/dev/full': No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(OutputFile, AFifoIsWrittenTo) {
  ASSERT_EQ(::mkfifo(at("fifo").c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = contents(at("fifo")); });
  EXPECT_TRUE(writeFile(at("fifo"), "through"));
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(at("fifo")));
}

TEST_F(OutputFile, ALinkIsFollowed) {
  std::filesystem::create_directory(at("other"));
  ASSERT_TRUE(writeFile(at("other/real"), "old"));
  std::filesystem::create_symlink("other/real", at("link"));
  std::filesystem::create_symlink("link", at("link of a link"));
  ASSERT_TRUE(writeFile(at("link of a link"), "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(at("link")));
  EXPECT_EQ(contents(at("other/real")), "new");
  std::filesystem::create_symlink("missing", at("dangling"));
  ASSERT_TRUE(writeFile(at("dangling"), "made"));
  EXPECT_EQ(contents(at("missing")), "made");
  std::filesystem::create_symlink("round", at("round"));
  EXPECT_THAT(writeFile(at("round"), "x").error().message, HasSubstr("Too many levels of symbolic links"));
}

TEST_F(OutputFile, WhatIsNoFileToWriteIsRefused) {
  EXPECT_EQ(writeFile(at(""), "x").error().message, "cannot write '" + at("") + "': Is a directory");
  EXPECT_THAT(writeFile(at("no/such"), "x").error().message, HasSubstr("No such file or directory"));
  ASSERT_TRUE(writeFile(at("kept"), "old"));
  std::filesystem::permissions(at("kept"), std::filesystem::perms(0444));
  EXPECT_EQ(writeFile(at("kept"), "new").error().message, "cannot write '" + at("kept") + "': the file is read-only");
  EXPECT_EQ(contents(at("kept")), "old");
}

} // namespace
