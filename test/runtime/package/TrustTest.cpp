// Tests which packages are opened: trust policies as options and as text, and lock files.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/KeyFiles.h"
#include "runtime/format/Lock.h"
#include "runtime/format/OutputFile.h"
#include "runtime/format/Writer.h"
#include "test/runtime/package/SamplePackage.h"

#include <kpkg/kpkg.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg;
using namespace kpkg::test;
using nlohmann::json;
using testing::HasSubstr;

namespace {

const format::SecretKey secret = format::secretKeyFromSeed({7});

std::string digits() { return format::keyText(format::publicKey(secret)); }

std::string signedPackage() { return format::Writer().finish({{"ops", json::array()}}, &secret).value(); }

} // namespace

TEST(Trust, SignedByKeys) {
  OpenOptions options;
  options.trust = KPKG_TRUST_SIGNED;
  options.keys = {digits()};
  std::string bytes = samplePackage(), signedBytes = signedPackage();
  EXPECT_EQ(Library::openMemory(bytes, "sample", options).error().status, KPKG_ERROR_TRUST);
  EXPECT_TRUE(Library::openMemory(signedBytes, "sample", options));
  options.keys = {"not hexadecimal"};
  EXPECT_THAT(Library::openMemory(signedBytes, "sample", options).error().message, HasSubstr("no Ed25519 public key"));
}

TEST(Trust, PoliciesAsText) {
  std::string damaged = samplePackage(), signedBytes = signedPackage();
  damaged.back() ^= 1;
  auto complaint = [&](const std::string &policy) {
    OpenOptions options;
    options.policy = policy;
    auto library = Library::openMemory(damaged, "sample", options);
    return library ? library->op("complain").value().call({}, {}).error() : library.error();
  };
  EXPECT_THAT(complaint("digest").message, HasSubstr("is damaged"));
  EXPECT_THAT(complaint("any").message, testing::Not(HasSubstr("SHA-256")));
  EXPECT_EQ(complaint("signed-by:" + digits()).status, KPKG_ERROR_TRUST);
  EXPECT_EQ(complaint("digset").message,
            "unknown trust policy 'digset'; there are any, digest and signed-by:<key>,<key>");
  EXPECT_THAT(complaint("signed-by:abc").message, HasSubstr("'abc' is no Ed25519 public key"));

  OpenOptions options;
  options.policy = "signed-by:" + digits();
  EXPECT_TRUE(Library::openMemory(signedBytes, "sample", options));
  options.trust = KPKG_TRUST_ANY;
  EXPECT_THAT(Library::openMemory(signedBytes, "sample", options).error().message, HasSubstr("both"));
}

TEST(Trust, LockFiles) {
  std::string bytes = samplePackage(), signedBytes = signedPackage();
  std::string path = testing::TempDir() + "kpkg-trust-test.lock";
  auto write = [&](bool withDigest) {
    format::Lock lock;
    ASSERT_TRUE(lock.add(*format::Reader::fromMemory(signedBytes, "signed.kpkg"), withDigest));
    ASSERT_TRUE(format::writeFile(path, lock.text()));
  };
  OpenOptions options;
  options.lock = path;
  write(true);
  EXPECT_TRUE(Library::openMemory(signedBytes, "folder/signed.kpkg", options));
  auto other = Library::openMemory(bytes, "signed.kpkg", options);
  EXPECT_EQ(other.error().status, KPKG_ERROR_TRUST);
  EXPECT_THAT(other.error().message, HasSubstr("has another file"));
  EXPECT_THAT(Library::openMemory(signedBytes, "x.kpkg", options).error().message, HasSubstr("does not have it"));
  write(false);
  EXPECT_TRUE(Library::openMemory(signedBytes, "signed.kpkg", options));
  EXPECT_THAT(Library::openMemory(bytes, "signed.kpkg", options).error().message, HasSubstr("asks for a signature"));
  options.lock = "/nowhere/kpkg.lock";
  EXPECT_EQ(Library::openMemory(signedBytes, "signed.kpkg", options).error().status, KPKG_ERROR_FILE);
}

TEST(Trust, ALockBySignerChecksDigests) {
  // Otherwise a signature would not cover the sections under the policy `any`.
  std::string bytes = samplePackage();
  auto reader = format::Reader::fromMemory(bytes, "sample");
  format::Writer writer;
  for (const format::Section &section : reader->sections())
    ASSERT_TRUE(writer.copy(*reader, section));
  std::string signedBytes = writer.finish(reader->manifest(), &secret).value();
  std::string path = testing::TempDir() + "kpkg-trust-digests-test.lock";
  format::Lock lock;
  ASSERT_TRUE(lock.add(*format::Reader::fromMemory(signedBytes, "sample"), /*withDigest=*/false));
  ASSERT_TRUE(format::writeFile(path, lock.text()));
  auto opened = format::Reader::fromMemory(signedBytes, "sample");
  const format::Section &section = opened->sections().front();
  signedBytes[size_t(opened->stored(section).data() - signedBytes.data())] ^= 1;
  OpenOptions options;
  options.policy = "any";
  options.lock = path;
  auto library = Library::openMemory(signedBytes, "sample", options);
  ASSERT_TRUE(library);
  EXPECT_THAT(library->section(section.name).error().message, HasSubstr("is damaged"));
}
