// Tests the KPKG_* environment variables. A process reads each one once, so that each case runs in a child process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/format/Lock.h"
#include "runtime/format/OutputFile.h"
#include "test/runtime/package/SamplePackage.h"

#include <kpkg/kpkg.hpp>

#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <initializer_list>
#include <sys/wait.h>
#include <unistd.h>

using namespace kpkg;
using namespace kpkg::test;

using Variables = std::initializer_list<std::pair<const char *, const char *>>;

/// Returns whether `body` is true in a process with these variables.
static bool inChild(Variables variables, const std::function<bool()> &body) {
  pid_t child = ::fork();
  if (child == 0) {
    for (auto [name, value] : variables)
      ::setenv(name, value, 1);
    bool good = false;
    try {
      good = body();
    } catch (const std::exception &error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool contains(const std::string &text, const char *part) {
  bool found = text.find(part) != text.npos;
  if (!found)
    std::fprintf(stderr, "not found: %s\nin: %s\n", part, text.c_str());
  return found;
}

static Tensor ones(DType dtype = DType::Float32) {
  Tensor tensor = Tensor::empty(dtype, {1, 1});
  std::memset(tensor.data(), 0, 4);
  return tensor;
}

static Op scaleOp() {
  static std::string bytes = samplePackage();
  static Library library = Library::openMemory(bytes, "sample").value();
  return library.op("scale").value();
}

TEST(Environment, NumThreads) {
  EXPECT_TRUE(inChild({{"KPKG_NUM_THREADS", "3"}}, [] { return kpkg_cpu_threads() == 3; }));
  for (const char *value : {"many", "0", "-3", "1.5", "2 ", "1025"})
    EXPECT_TRUE(inChild({{"KPKG_NUM_THREADS", value}}, [] {
      static std::vector<std::string> messages;
      kpkg_set_log([](void *, kpkg_log_level, const char *text) { messages.push_back(text); }, nullptr);
      const int available = cpuThreads();
      return available >= 1 && cpuThreads() == available && messages.size() == 1 &&
             contains(messages[0], "KPKG_NUM_THREADS=") && contains(messages[0], "a number of threads from 1 to 1024");
    }));
}

TEST(Environment, UnknownVariables) {
  static std::vector<std::string> messages;
  auto collect = [] {
    messages.clear();
    kpkg_set_log([](void *, kpkg_log_level, const char *text) { messages.push_back(text); }, nullptr);
    return cpuThreads() >= 1 && cpuThreads() >= 1;
  };
  EXPECT_TRUE(inChild({{"KPKG_FALBACK", "strict"}, {"KPKG_CACHE_DIR", "/tmp"}, {"KPKG_BUILD_DIR", "build"}}, [&] {
    return collect() && messages.size() == 1 && contains(messages[0], "KPKG_FALBACK is no variable that kpkg reads") &&
           contains(messages[0], "KPKG_FALLBACK");
  }));
  EXPECT_TRUE(inChild({{"KPKG_LOG", "verbose"}}, [&] {
    return collect() && messages.size() == 1 &&
           contains(messages[0], "KPKG_LOG=verbose is not understood (error, warn, info or debug); ignored");
  }));
}

TEST(Environment, SetThreads) {
  EXPECT_TRUE(inChild({{"KPKG_NUM_THREADS", "3"}}, [] {
    kpkg_follow_cpu_threads([]() -> int32_t { return 7; }); // the user's number takes precedence
    bool kept = cpuThreads() == 3;
    return setCpuThreads(5).ok() && cpuThreads() == 5 && kept;
  }));
  EXPECT_TRUE(inChild({}, [] {
    const int available = cpuThreads();
    kpkg_follow_cpu_threads([]() -> int32_t { return 7; });
    bool follows = cpuThreads() == 7;
    kpkg_follow_cpu_threads([]() -> int32_t { return 0; });
    follows = follows && cpuThreads() == 1;
    kpkg_follow_cpu_threads(nullptr);
    return follows && cpuThreads() == available;
  }));
  for (int count : {0, -1, 1025})
    EXPECT_TRUE(inChild({}, [&] {
      const int before = cpuThreads();
      Status status = setCpuThreads(count);
      return !status && status.error().status == KPKG_ERROR_USE && cpuThreads() == before &&
             contains(status.error().message, "a large call uses 1 to 1024 threads, not ");
    }));
}

TEST(Environment, Require) {
  EXPECT_TRUE(inChild({{"KPKG_REQUIRE", "deterministic"}}, [] { return scaleOp().call({}, {ones()}).ok(); }));
  EXPECT_TRUE(inChild({{"KPKG_REQUIRE", "deterministic,exact"}}, [] {
    auto result = scaleOp().call({}, {ones()});
    return !result && result.error().status == KPKG_ERROR_NO_INSTANCE &&
           contains(result.error().message, "is not exact, which KPKG_REQUIRE asks for");
  }));
  for (const char *value : {"1", "deterministic,exakt"})
    EXPECT_TRUE(inChild({{"KPKG_REQUIRE", value}}, [] {
      auto opened = Library::openMemory(samplePackage(), "sample");
      return !opened && contains(opened.error().message, "is not understood (deterministic, batch_invariant or exact)");
    }));
}

TEST(Environment, Disable) {
  for (const char *value : {"1", "all", "other,test::scale", "scale", "other,scale"})
    EXPECT_TRUE(inChild({{"KPKG_DISABLE", value}}, [] {
      auto result = scaleOp().call({}, {ones()});
      return !result && contains(result.error().message, "test::scale is disabled by KPKG_DISABLE");
    }));
  for (const char *value : {"", "0", "other", "cale", "other::scale", "test::"})
    EXPECT_TRUE(inChild({{"KPKG_DISABLE", value}}, [] { return scaleOp().call({}, {ones()}).ok(); }));
}

TEST(Environment, OpsThatNoPackageHas) {
  EXPECT_TRUE(inChild({{"KPKG_DISABLE", "scal,other"}, {"KPKG_FALLBACK", "test::scale=warn,skale=silent"}}, [] {
    static std::vector<std::string> messages;
    kpkg_set_log([](void *, kpkg_log_level, const char *text) { messages.push_back(text); }, nullptr);
    bool runs = scaleOp().call({}, {ones()}).ok() && scaleOp().call({}, {ones()}).ok();
    kpkg_set_log(nullptr, nullptr);
    return runs &&
           messages == std::vector<std::string>{
                           "KPKG_DISABLE names 'scal', which no opened package has; did you mean 'test::scale'?",
                           "KPKG_DISABLE names 'other', which no opened package has",
                           "KPKG_FALLBACK names 'skale', which no opened package has; did you mean 'test::scale'?"};
  }));
}

TEST(Environment, Fallback) {
  auto run = [](bool expected) {
    std::string bytes = samplePackage();
    Registry registry;
    registry.add(Library::openMemory(bytes, "sample").value()).value();
    registry
        .setFallback("scale",
                     [](const kpkg_op *, kpkg_call &call) {
                       call.results[0] = {};
                       call.results[0].source = KPKG_FROM_NOTHING;
                       return KPKG_OK;
                     })
        .value();
    return registry.op("scale").value().call({}, {ones(DType::Int32)}).ok() == expected;
  };
  EXPECT_TRUE(inChild({{"KPKG_FALLBACK", "strict"}}, [&] { return run(false); }));
  EXPECT_TRUE(inChild({{"KPKG_FALLBACK", "silent"}}, [&] { return run(true); }));
  EXPECT_TRUE(inChild({{"KPKG_FALLBACK", "silent,test::scale=strict"}}, [&] { return run(false); }));
  EXPECT_TRUE(inChild({{"KPKG_FALLBACK", "silent,scale=strict"}}, [&] { return run(false); }));
  EXPECT_TRUE(inChild({{"KPKG_FALLBACK", "strict,test::other=silent"}}, [&] { return run(false); }));
  EXPECT_TRUE(inChild({{"KPKG_FALLBACK", "test::scale=silent,strict"}}, [&] { return run(true); }));
}

TEST(Environment, Trust) {
  std::string damaged = samplePackage();
  damaged.back() ^= 1;
  auto call = [&] {
    return Library::openMemory(damaged, "sample").value().op("complain").value().call({}, {}).error();
  };
  EXPECT_TRUE(inChild({{"KPKG_TRUST", "digest"}}, [&] { return contains(call().message, "is damaged"); }));
  EXPECT_TRUE(inChild({{"KPKG_TRUST", "any"}},
                      [&] { return !call().message.empty() && call().message.find("SHA-256") == std::string::npos; }));
  for (const char *value : {"signed-by:0000000000000000000000000000000000000000000000000000000000000000", "digset"})
    EXPECT_TRUE(inChild({{"KPKG_TRUST", value}},
                        [&] { return Library::openMemory(damaged, "sample").error().status == KPKG_ERROR_TRUST; }));
}

TEST(Environment, Lock) {
  std::string bytes = samplePackage(), path = testing::TempDir() + "kpkg-environment-test.lock";
  format::Lock lock;
  ASSERT_TRUE(lock.add(*format::Reader::fromMemory(bytes, "sample"), /*withDigest=*/true));
  ASSERT_TRUE(format::writeFile(path, lock.text()));
  EXPECT_TRUE(inChild({{"KPKG_LOCK", path.c_str()}}, [&] {
    return Library::openMemory(bytes, "sample") &&
           Library::openMemory(bytes, "other").error().status == KPKG_ERROR_TRUST;
  }));
  // A missing lock file must not disable the lock.
  EXPECT_TRUE(inChild({{"KPKG_LOCK", "/nowhere/kpkg.lock"}},
                      [&] { return contains(Library::openMemory(bytes, "sample").error().message, "/nowhere"); }));
}

TEST(Environment, Log) {
  // The default sink writes one line per message to stderr, and nothing below the limit.
  auto run = [](const char *level, const char *expected) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    EXPECT_TRUE(inChild({{"KPKG_LOG", level}, {"KPKG_FALLBACK", "wran"}}, [&] {
      ::dup2(ends[1], 2);
      scaleOp().call({}, {ones()}).value();
      Registry registry;
      registry.add(Library::openMemory(samplePackage(), "sample").value()).value();
      (void)registry.op("scale").value().call({}, {ones(DType::Int32)});
      return true;
    }));
    ::close(ends[1]);
    char text[1000];
    ssize_t size = ::read(ends[0], text, sizeof text);
    ::close(ends[0]);
    EXPECT_EQ(std::string(text, size > 0 ? size_t(size) : 0), expected);
  };
  run("warn", "kpkg: KPKG_FALLBACK=wran is not understood (strict, warn or silent); ignored\n");
  run("error", "");
}
