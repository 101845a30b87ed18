// Runs the same ops on many threads while signatures, libraries and fallbacks change.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/runtime/package/SamplePackage.h"

#include <kpkg/kpkg.hpp>

#include <atomic>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#ifndef __has_feature // of Clang
#define __has_feature(name) 0
#endif

using namespace kpkg;
using namespace kpkg::test;

static void inThreads(int count, const std::function<void(int)> &body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i)
    threads.emplace_back(body, i);
  for (std::thread &thread : threads)
    thread.join();
}

/// Makes one call with a random shape; returns whether every element is right.
static bool callOnce(const Op &scale, std::mt19937 &random) {
  int64_t rows = 1 + int64_t(random() % 40), cols = 1 + int64_t(random() % 64);
  Tensor x = Tensor::empty(DType::Float32, {rows, cols});
  for (int64_t i = 0; i < x.elements(); ++i)
    x.as<float>()[i] = float(i);
  double alpha = double(random() % 7);
  auto result = scale.call({}, {x}, {{"alpha", alpha}});
  if (!result)
    return false;
  for (int64_t i = 0; i < x.elements(); ++i)
    if (result->front().as<float>()[i] != float(alpha) * float(i))
      return false;
  return true;
}

TEST(Stress, ThreadsShareAnOp) {
  std::string bytes = samplePackage();
  Library library = Library::openMemory(bytes, "sample").value();
  Op scale = library.op("scale").value();
  std::atomic<int> wrong = 0;
  inThreads(8, [&](int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    for (int i = 0; i < 500; ++i)
      wrong += !callOnce(scale, random);
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(scale.stats().calls, 4000u);
  EXPECT_EQ(scale.stats().launches, 4000u);
}

TEST(Stress, LargeGridsFromManyThreads) {
  std::string bytes = samplePackage();
  Library library = Library::openMemory(bytes, "sample").value();
  Op scale = library.op("scale").value();
  std::atomic<int> wrong = 0;
  inThreads(4, [&](int seed) {
    Tensor x = Tensor::empty(DType::Float32, {1000, 100});
    std::fill_n(x.as<float>(), x.elements(), float(seed));
    for (int i = 0; i < 20; ++i) {
      Tensor y = std::move(scale.call({}, {x}).value().front());
      wrong += !std::all_of(y.as<float>(), y.as<float>() + y.elements(),
                            [&](float value) { return value == 2.f * float(seed); });
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(Stress, LibrariesOpenAndClose) {
  std::string bytes = samplePackage();
  std::atomic<int> wrong = 0;
  inThreads(6, [&](int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    for (int i = 0; i < 15; ++i) {
      Op scale = Library::openMemory(bytes, "sample").value().op("scale").value();
      for (int j = 0; j < 10; ++j)
        wrong += !callOnce(scale, random);
    }
  });
  EXPECT_EQ(wrong, 0);
}

#if !__has_feature(thread_sanitizer) // which cannot follow a fork of several threads
TEST(Stress, ForkedChildrenCall) {
  std::string bytes = samplePackage();
  Op scale = Library::openMemory(bytes, "sample").value().op("scale").value();
  std::atomic<bool> isDone = false;
  std::atomic<int> wrong = 0;
  std::thread forking([&] {
    for (int i = 0; i < 40; ++i) {
      pid_t child = ::fork();
      if (child == 0) {
        ::alarm(20); // a mutex that nobody unlocks there
        std::mt19937 random(1);
        Op other = Library::openMemory(bytes, "sample").value().op("scale").value();
        ::_exit(callOnce(scale, random) && callOnce(other, random) ? 0 : 1);
      }
      int status = -1;
      wrong += ::waitpid(child, &status, 0) != child || status != 0;
    }
    isDone = true;
  });
  inThreads(4, [&](int seed) {
    std::mt19937 random(static_cast<unsigned>(seed));
    while (!isDone) { // first calls of a library take every lock
      Op fresh = Library::openMemory(bytes, "sample").value().op("scale").value();
      wrong += !callOnce(fresh, random) || !callOnce(scale, random);
    }
  });
  forking.join();
  EXPECT_EQ(wrong, 0);
}
#endif

TEST(Stress, FallbacksChangeUnderCalls) {
  std::string bytes = samplePackage();
  Registry registry;
  ASSERT_TRUE(registry.add(Library::openMemory(bytes, "sample").value()));
  ASSERT_TRUE(registry.setPolicy(Policy::Silent));
  Op scale = registry.op("scale").value();
  std::atomic<int> wrong = 0, fallbacks = 0;
  inThreads(4, [&](int seed) {
    int32_t number = 1;
    for (int i = 0; i < 300; ++i) {
      if (seed == 0)
        wrong += !registry.setFallback("test::scale", [&fallbacks](const kpkg_op *, kpkg_call &call) {
          call.results[0] = {};
          call.results[0].kind = KPKG_NONE;
          call.results[0].source = KPKG_FROM_NOTHING;
          ++fallbacks;
          return KPKG_OK;
        });
      auto result = scale.call({}, {Tensor(&number, DType::Int32, {1, 1})});
      wrong += !result && result.error().status != KPKG_ERROR_NO_INSTANCE;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(scale.stats().fallbacks, uint64_t(fallbacks));
}
