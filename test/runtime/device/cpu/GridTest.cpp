// Tests grids on the host: blocks run once, scratch is private and aligned, asserts are reported, copies are complete.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/device/cpu/Grid.h"
#include "runtime/device/cpu/CpuTarget.h"
#include "runtime/device/cpu/StridedCopy.h"

#include <atomic>
#include <gtest/gtest.h>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace kpkg;

static int32_t countBlocks(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  auto *counts = reinterpret_cast<std::atomic<int> *>(call->args[0]);
  for (int64_t block = begin; block < end; ++block)
    ++counts[block];
  return 0;
}

static cpu::Launch launchOf(KpkgCpuKernel kernel, const int64_t *args, int64_t x, int64_t y, int64_t z) {
  cpu::Launch launch;
  launch.kernel = kernel;
  launch.call.args = args;
  launch.call.grid[0] = x, launch.call.grid[1] = y, launch.call.grid[2] = z;
  launch.workBytes = 1 << 30;
  return launch;
}

TEST(Grid, RunsEachBlockOnce) {
  std::vector<std::atomic<int>> counts(7 * 11 * 13);
  int64_t args[] = {reinterpret_cast<int64_t>(counts.data())};
  EXPECT_EQ(cpu::run(launchOf(countBlocks, args, 7, 11, 13)), 0);
  for (auto &count : counts)
    EXPECT_EQ(count, 1);
  EXPECT_EQ(cpu::run(launchOf(countBlocks, args, 0, 11, 13)), 0);
}

static int32_t recordThread(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  static std::mutex lock;
  std::lock_guard guard(lock);
  reinterpret_cast<std::set<std::thread::id> *>(call->args[0])->insert(std::this_thread::get_id());
  return 0;
}

TEST(Grid, SmallWorkStaysOnTheCallersThread) {
  std::set<std::thread::id> threads;
  int64_t args[] = {reinterpret_cast<int64_t>(&threads)};
  cpu::Launch launch = launchOf(recordThread, args, 1000, 1, 1);
  launch.workBytes = 1000;
  cpu::run(launch);
  EXPECT_EQ(threads, std::set<std::thread::id>{std::this_thread::get_id()});
}

static int32_t useScratch(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  auto *scratch = static_cast<int64_t *>(call->scratch);
  if (reinterpret_cast<uintptr_t>(scratch) % KPKG_SCRATCH_ALIGNMENT != 0)
    return 1;
  for (int64_t block = begin; block < end; ++block) {
    for (int i = 0; i < 1000; ++i)
      scratch[i] = block;
    for (int i = 0; i < 1000; ++i)
      if (scratch[i] != block)
        return 2;
  }
  return 0;
}

TEST(Grid, ScratchIsPrivateAndAligned) {
  cpu::Launch launch = launchOf(useScratch, nullptr, 2000, 1, 1);
  launch.scratchBytes = 8000;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i)
    callers.emplace_back([&] { EXPECT_EQ(cpu::run(launch), 0); });
  for (std::thread &caller : callers)
    caller.join();
}

/// The most blocks that ran at the same time.
struct Concurrency {
  std::atomic<int> running = 0, most = 0;
};

static int32_t measureConcurrency(const KpkgCpuCall *call, int64_t begin, int64_t end) {
  auto &seen = *reinterpret_cast<Concurrency *>(call->args[0]);
  int now = ++seen.running;
  for (int most = seen.most; most < now && !seen.most.compare_exchange_weak(most, now);) {
  }
  std::this_thread::yield();
  --seen.running;
  return 0;
}

TEST(Grid, UsesNoMoreThreadsThanWereSet) {
  const int before = cpu::threadCount();
  for (int threads : {1, 2, 3, 1}) {
    cpu::setThreadCount(threads);
    Concurrency seen;
    int64_t args[] = {reinterpret_cast<int64_t>(&seen)};
    EXPECT_EQ(cpu::run(launchOf(measureConcurrency, args, 1000, 1, 1)), 0);
    EXPECT_LE(seen.most, threads);
    EXPECT_GE(seen.most, 1);
  }
  cpu::setThreadCount(before);
}

static int32_t failAt100(const KpkgCpuCall *, int64_t begin, int64_t end) { return begin <= 100 && 100 < end ? 5 : 0; }

TEST(Grid, ReportsAFailedAssert) {
  EXPECT_EQ(cpu::run(launchOf(failAt100, nullptr, 1000, 1, 1)), 5);
  EXPECT_EQ(cpu::run(launchOf(failAt100, nullptr, 100, 1, 1)), 0);
}

TEST(Grid, WorksInAChildAfterFork) {
  std::vector<std::atomic<int>> counts(100);
  int64_t args[] = {reinterpret_cast<int64_t>(counts.data())};
  cpu::Launch launch = launchOf(countBlocks, args, 100, 1, 1);
  EXPECT_EQ(cpu::run(launch), 0); // creates the threads
  pid_t child = ::fork();
  if (child == 0)
    ::_exit(cpu::run(launch) == 0 && counts[99] == 2 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

template <typename T> static void checkCopies() {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    size_t rank = random() % 5;
    std::vector<int64_t> shape, order;
    for (size_t d = 0; d < rank; ++d)
      shape.push_back(int64_t(random() % (round % 10 == 0 ? 90 : 7)));
    if (rank > 3)
      shape[0] = 2;
    int64_t count = std::accumulate(shape.begin(), shape.end(), int64_t(1), std::multiplies<>());
    auto stridesOf = [&](bool withZero) {
      std::vector<size_t> order(rank);
      std::iota(order.begin(), order.end(), 0);
      std::shuffle(order.begin(), order.end(), random);
      std::vector<int64_t> strides(rank);
      int64_t step = 1 + int64_t(random() % 2);
      for (size_t d : order) {
        strides[d] = step;
        step *= std::max<int64_t>(1, shape[d]);
        if (withZero && random() % 4 == 0)
          strides[d] = 0;
      }
      return strides;
    };
    std::vector<int64_t> from = stridesOf(true), to = stridesOf(false);
    std::vector<T> source(size_t(2 * count + 2)), destination(size_t(2 * count + 2), T(99)), expected;
    for (size_t i = 0; i < source.size(); ++i)
      source[i] = T(i * 37 + 5);
    expected = destination;
    for (int64_t linear = 0; linear < count; ++linear) {
      int64_t rest = linear, fromOffset = 0, toOffset = 0;
      for (size_t d = rank; d-- > 0;) {
        fromOffset += rest % shape[d] * from[d];
        toOffset += rest % shape[d] * to[d];
        rest /= shape[d];
      }
      expected[size_t(toOffset)] = source[size_t(fromOffset)];
    }
    cpu::stridedCopy(source.data(), from, destination.data(), to, shape, sizeof(T));
    ASSERT_EQ(destination, expected);
  }
}

TEST(StridedCopy, CopiesEveryElementOfAnyView) {
  checkCopies<uint8_t>();
  checkCopies<uint16_t>();
  checkCopies<uint32_t>();
  checkCopies<uint64_t>();
}

TEST(StridedCopy, NegativeStrides) {
  int32_t source[] = {1, 2, 3}, destination[3];
  int64_t from[] = {-1}, to[] = {1}, shape[] = {3};
  cpu::stridedCopy(source + 2, from, destination, to, shape, 4);
  EXPECT_EQ(std::vector<int32_t>(destination, destination + 3), (std::vector<int32_t>{3, 2, 1}));
}
