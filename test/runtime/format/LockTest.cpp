// Tests lock files: contents, refused packages, and invalid texts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Lock.h"
#include "runtime/format/KeyFiles.h"
#include "runtime/format/Rewrite.h"
#include "test/runtime/format/SamplePackages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace kpkg;
using namespace kpkg::test;
using format::Lock;
using format::Reader;
using testing::HasSubstr;

namespace {

const format::SecretKey key = format::secretKeyFromSeed({1, 2, 3}), other = format::secretKeyFromSeed({4});

Reader named(const std::string &bytes, const std::string &name) {
  return std::move(Reader::fromMemory(bytes, name).value());
}

/// Parses the text of Lock::text() again.
Lock reread(const Lock &lock) { return Lock::parse(lock.text(), "kpkg.lock").value(); }

} // namespace

TEST(Lock, HoldsTheFileByNameAndDigest) {
  std::string bytes = validPackage();
  Lock made;
  ASSERT_TRUE(made.add(named(bytes, "build/a.kpkg"), /*withDigest=*/true));
  Lock lock = reread(made);
  EXPECT_EQ(lock.text(), made.text());
  EXPECT_TRUE(lock.check(named(bytes, "/elsewhere/a.kpkg")));
  auto unknown = lock.check(named(bytes, "b.kpkg"));
  EXPECT_EQ(unknown.error().status, KPKG_ERROR_TRUST);
  EXPECT_EQ(unknown.error().message, "'b.kpkg' is not trusted: the lock 'kpkg.lock' does not have it");
  // Any byte counts, also in sections that are not read.
  std::string changed = bytes;
  changed.back() ^= 1;
  EXPECT_THAT(lock.check(named(changed, "a.kpkg")).error().message, HasSubstr("has another file: SHA-256 "));
  std::string resigned = format::withSignature(named(bytes, "a"), key).value();
  EXPECT_THAT(lock.check(named(resigned, "a.kpkg")).error().message, HasSubstr("has another file"));
}

TEST(Lock, HoldsSignersAlone) {
  std::string bytes = validPackage(), mine = format::withSignature(named(bytes, "a"), key).value(),
              others = format::withSignature(named(bytes, "a"), other).value(),
              both = format::withSignature(named(mine, "a"), other).value();
  Lock made;
  EXPECT_THAT(made.add(named(bytes, "a"), /*withDigest=*/false).error().message, HasSubstr("no valid signature"));
  ASSERT_TRUE(made.add(named(mine, "a"), /*withDigest=*/false));
  Lock lock = reread(made);
  EXPECT_TRUE(lock.check(named(mine, "a")));
  EXPECT_TRUE(lock.check(named(both, "a")));
  std::string cause = "asks for a signature by " + format::keyText(format::publicKey(key)) + ", and there is no valid";
  EXPECT_THAT(lock.check(named(others, "a")).error().message, HasSubstr(cause));
  EXPECT_THAT(lock.check(named(bytes, "a")).error().message, HasSubstr(cause));
}

TEST(Lock, RefusesDamageAndEqualNames) {
  std::string bytes = validPackage(), damaged = bytes;
  damaged.back() ^= 1;
  Lock lock;
  EXPECT_THAT(lock.add(named(damaged, "a"), true).error().message, HasSubstr("section 'docs/b' is damaged"));
  ASSERT_TRUE(lock.add(named(bytes, "x/a"), true));
  EXPECT_THAT(lock.add(named(bytes, "y/a"), true).error().message, HasSubstr("two packages are called 'a'"));
}

TEST(Lock, RefusesOtherTexts) {
  std::string digest(64, '0');
  auto refusal = [](const std::string &text) {
    auto lock = Lock::parse(text, "x.lock");
    return lock ? "" : lock.error().message;
  };
  EXPECT_EQ(refusal(R"({"format": 1, "packages": {}})"), "");
  for (auto [text, cause] : {
           std::pair<std::string, std::string>{"", "the lock 'x.lock' is not JSON"},
           {"[]", "is no lock"},
           {R"({"format": 1})", "is no lock"},
           {R"({"format": 1, "packages": []})", "is no lock"},
           {R"({"format": 1, "packages": {}, "more": 1})", "is no lock"},
           {R"({"format": 2, "packages": {}})", "is of format 2, this runtime reads 1"},
           {R"({"format": 1, "packages": {"a": 1}})", "'a' is no object"},
           {R"({"format": 1, "packages": {"a": {}}})", "'a' says neither `sha256` nor `signers`"},
           {R"({"format": 1, "packages": {"a": {"signers": []}}})", "says neither"},
           {R"({"format": 1, "packages": {"a": {"sha256": 1}}})", "`sha256` that is not 64"},
           {R"({"format": 1, "packages": {"a": {"sha256": "00"}}})", "`sha256` that is not 64"},
           {R"({"format": 1, "packages": {"a": {"signers": ["x"]}}})", "wrong signer: 'x' is no Ed25519"},
           {R"({"format": 1, "packages": {"a": {"signers": [7]}}})", "wrong signer: '7' is no Ed25519"},
           {R"({"format": 1, "packages": {"a": {"sha256": ")" + digest + R"(", "signer": []}}})", "`signer` that is"},
           {R"({"format": 1, "packages": {"a": {}, "a": {}}})", "has the key 'a' twice"},
           {std::string(100000, '['), "nested deeper"},
       })
    EXPECT_THAT(refusal(text), HasSubstr(cause)) << text.substr(0, 80);
}
